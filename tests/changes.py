"""What differs from the commit that the work started from: its tests run in the gate, too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from pathlib import Path


def _git(root: Path, *arguments: str) -> str | None:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def base(root: Path) -> str | None:
    """Return the commit to compare with, or None where git knows of none.

    It is $CHANGED_SINCE, which CI sets to what it tested before; else where this branch left
    `origin/main`; on `main` itself, and in a fresh clone of it, the commit before the last.
    """
    given = os.environ.get("CHANGED_SINCE")
    if given and (known := _git(root, "rev-parse", "--verify", "--quiet", f"{given}^{{commit}}")):
        return known  # of a branch that is new, CI names a commit that there is not
    left = _git(root, "merge-base", "HEAD", "origin/main")
    if left is None or left == _git(root, "rev-parse", "HEAD"):
        return _git(root, "rev-parse", "--verify", "--quiet", "HEAD^")
    return left


def changed(root: Path) -> set[str] | None:
    """Return the files that differ, those not committed included; None where nobody can say."""
    since = base(root)
    if since is None:
        return None
    differing = _git(root, "diff", "--name-only", "--no-renames", "-z", since)
    untracked = _git(root, "ls-files", "-z", "--others", "--exclude-standard")
    if differing is None or untracked is None:
        return None
    return set(filter(None, f"{differing}\0{untracked}".split("\0")))


def concern(files: Collection[str] | None, paths: Collection[str]) -> bool:
    """Return whether a file is at or under one of the paths, or might be."""
    return files is None or any(
        file == path or file.startswith(f"{path}/") for file in files for path in paths
    )
