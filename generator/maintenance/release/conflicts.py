"""`python -m maintenance.release.conflicts`: the conflicts of updates from the last release.

Projects of the last release are edited as users edit them, then updated to this checkout. Each
kind of edit has a limit for the number of files that conflict.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from maintenance.release.running import run
from torchsmith import __version__
from torchsmith.errors import InputError
from torchsmith.project import find
from torchsmith.render import Job, render
from torchsmith.scratch import scratch
from torchsmith.update import trying
from torchsmith.versions import releases

ROOT = Path(__file__).resolve().parents[3]
_AUTHOR = ("-c", "user.name=Rehearsal", "-c", "user.email=rehearsal@localhost")
OWN = (
    "device/acme/runtime.cpp",
    "csrc/operators/gelu.cpp",
    "tests/operators/test_gelu.py",
    "python/torch_foo/tuning.py",
)
EVERY = 10
"""One of so many files in csrc/aten is edited."""


@dataclass(frozen=True)
class User:
    """A project and its edits.

    Attributes:
        answers: The answers that it is rendered from.
        edit: Edits its files.
        limit: The most files that may conflict.
    """

    answers: Mapping[str, Any]
    edit: Callable[[Path], None]
    limit: int


def add_own_files(project: Path) -> None:
    """Add a device, an operator with its test, and a module."""
    for path in OWN:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("// ours\n", "utf-8")


def edit_texts(project: Path) -> None:
    """Edit the first sentence of the README, the CI, the changelog and the ignored files."""
    _insert(project / "README.md", 2, "The backend for our chip.")
    _insert(project / "CHANGELOG.md", 2, "Our first version.")
    _insert(project / ".github" / "workflows" / "ci.yml", -1, "# Runs on our machines.")
    _insert(project / ".gitignore", -1, "/scratch/")


def edit_kernels(project: Path) -> None:
    """Add a comment in the middle of some of the operators' files."""
    for file in sorted((project / "csrc" / "aten").rglob("*.cpp"))[::EVERY]:
        _insert(file, len(file.read_text("utf-8").splitlines()) // 2, "// ours")


USERS = {
    "own device and operators": User({"preset": "standard"}, add_own_files, limit=0),
    "edited README, CHANGELOG and CI": User({"preset": "minimal"}, edit_texts, limit=1),
    "edited operators": User({"preset": "full"}, edit_kernels, limit=3),
}


def last_release(template: Path) -> str | None:
    """Return the newest release before this version, or None."""
    before = [tag for tag in releases(str(template)) if Version(tag) < Version(__version__)]
    return before[-1] if before else None


def conflicting(user: User, template: Path, release: str) -> list[str]:
    """Return the files that conflict in an update of a release to the template's HEAD."""
    with scratch() as folder:
        project = folder / "torch-foo"
        render(project, Job({"backend_name": "foo", **user.answers}, str(template), release))
        user.edit(project)
        run("git", "init", "--quiet", cwd=project)
        run("git", "add", "--all", cwd=project)
        run("git", *_AUTHOR, "commit", "--quiet", "--message", "Edited", cwd=project)
        with trying(find(project), {}, ref="HEAD") as plan:
            return plan.conflicts


def require_few(template: Path, release: str, users: Mapping[str, User]) -> None:
    """Print how many files conflict for each user.

    Raises:
        InputError: A user has more conflicts than the limit.
    """
    over = []
    for name, user in users.items():
        files = conflicting(user, template, release)
        print(f"{name}: {len(files)} conflicts, {user.limit} allowed", flush=True)
        if len(files) > user.limit:
            over.append(f"{name} ({', '.join(files)})")
    if over:
        raise InputError(
            f"an update from {release} has too many conflicts for {'; '.join(over)}: "
            "change fewer lines of these files, or raise the limit and say so in CHANGELOG.md"
        )


def _insert(file: Path, place: int, line: str) -> None:
    lines = file.read_text("utf-8").splitlines()
    at = place if place >= 0 else len(lines)
    file.write_text("\n".join([*lines[:at], line, *lines[at:], ""]), "utf-8")


def main() -> int:
    """Check the updates from the last release; the status is 1 if too many files conflict."""
    release = last_release(ROOT)
    if release is None:
        print("conflicts: there is no earlier release to update from")
        return 0
    require_few(ROOT, release, USERS)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"release: {error}")
