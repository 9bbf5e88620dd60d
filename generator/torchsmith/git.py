"""Git, as far as the commands need it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from torchsmith.errors import InputError


def git(folder: Path, *arguments: str) -> str:
    """Run git in ``folder`` and return what it prints.

    Raises:
        InputError: Git is missing, or refused; the text is its own.
    """
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise InputError("git is not installed: install it, updates are merges of git's") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or [f"git {arguments[0]} failed"]
        raise InputError(f"'{folder}': {said[-1].removeprefix('fatal: ')}") from error
    return done.stdout


def root_of(folder: Path) -> Path | None:
    """Return the root of the repository that ``folder`` is in, or None."""
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel").strip())
    except InputError:
        return None


def changes(folder: Path) -> list[str]:
    """Return what is uncommitted in ``folder``, as `git status` prints it."""
    return git(folder, "status", "--porcelain", "--", ".").splitlines()
