"""`python -m maintenance.compat`: checks a full render against the supported releases."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from maintenance.compat import cxx, names, pythons, releases, schemas
from torchsmith import catalog
from torchsmith.errors import InputError
from torchsmith.render import Job, render

BACKEND = "foo"
TESTED = ".".join(catalog.torch_window()["tested"].split(".")[:2])


def torch_problems(
    project: Path, build: Path, minor: str, jobs: int, *, aarch64: bool = False
) -> Iterator[str]:
    """Yield the problems of a rendered project with a release."""
    torch = releases.sources(minor, releases.AARCH64 if aarch64 else None)
    for use in names.missing(project, BACKEND, names.Library(torch)):
        yield f"{use.file.relative_to(project)}:{use.line}: PyTorch {minor} has no {use.name}"
    for problem in schemas.differing(project / "csrc", releases.sources(TESTED), torch):
        yield f"PyTorch {minor}: csrc/{problem}"
    groups = cxx.configure(project, build, torch, aarch64=aarch64)
    for file in sorted(cxx.uncovered(project, groups)):
        yield f"{file.relative_to(project)}: compiled by nothing"
    if complaint := cxx.precompile(build):
        yield f"precompiled header: PyTorch {minor}:\n{complaint}"
        return  # every group would say the same
    for group, complaint in cxx.check(groups, jobs):
        if complaint:
            yield f"{group.name}: PyTorch {minor}:\n{complaint}"


def print_problems(subject: str, found: list[str]) -> bool:
    """Print the problems, or that there are none, and return whether there are."""
    print(
        *found, f"{subject}: {f'{len(found)} problems' if found else 'fits'}", sep="\n", flush=True
    )
    return bool(found)


def main() -> int:
    """Check; the status is 1 if there is a problem with any release."""
    parser = argparse.ArgumentParser(prog="python -m maintenance.compat", description=__doc__)
    parser.add_argument(
        "--torch", action="append", metavar="VERSION", help="a minor version; may be repeated"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), metavar="N", help="compilers at a time"
    )
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        render(project, Job({"backend_name": BACKEND, "preset": "full"}))
        failed |= print_problems("Python", pythons.mypy_problems(project, Path(folder) / "mypy"))
        for minor in arguments.torch or catalog.torch_window()["versions"]:
            build = Path(folder) / minor
            found = list(torch_problems(project, build, minor, arguments.jobs))
            failed |= print_problems(f"PyTorch {minor}", found)
        if shutil.which(cxx.CROSS):
            build = Path(folder) / "aarch64"
            found = list(torch_problems(project, build, TESTED, arguments.jobs, aarch64=True))
            failed |= print_problems(f"PyTorch {TESTED} on aarch64", found)
        else:
            print(
                f"aarch64: not checked, as there is no {cxx.CROSS}: install g++-aarch64-linux-gnu"
            )
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"compat: {error}")
