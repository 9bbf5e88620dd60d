"""`python -m maintenance.release`: rehearses a release."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from maintenance.release import channels, tags, wheels
from maintenance.release.running import make_environment
from torchsmith import catalog
from torchsmith.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print the name and the duration of a step."""
    begin = time.monotonic()
    yield
    print(f"{name}: done in {time.monotonic() - begin:.0f} s", flush=True)


def make_documentation(project: Path, folder: Path) -> None:
    """Make a project's documentation as its release does."""
    environment = make_environment(folder / "pages")
    environment.install("mkdocs-material")
    environment.run("mkdocs", "build", "--strict", cwd=project)


def main() -> int:
    """Rehearse; the status is 1 if a step failed."""
    parser = argparse.ArgumentParser(prog="python -m maintenance.release", description=__doc__)
    parser.add_argument("packages", type=Path, help="the folder with the template's packages")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", metavar="FOLDER")
    parser.add_argument(
        "--torch",
        action="append",
        choices=catalog.torch_window()["versions"],
        help="a minor version to build wheels for, all by default; may be repeated",
    )
    options = parser.parse_args()
    folder = options.build.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for channel in channels.CHANNELS:
        with step(channel):
            channels.rehearse(channel, options.packages, folder)
    with step("tags"):
        template = tags.tag_template(ROOT, folder)
        project = tags.tag_project(template, folder)
    with step("documentation"):
        make_documentation(project, folder)
    for torch in options.torch or catalog.torch_window()["versions"]:
        with step(f"a wheel for PyTorch {torch}"):
            wheel = wheels.rehearse(project, torch, folder / f"torch-{torch}")
        print(f"  {wheel.name}", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"release: {error}")
