"""The result of `git merge` for a project and two renders: the oracle for updates."""

from __future__ import annotations

import shutil
from pathlib import Path

from commanding import run
from rendering import git

Index = dict[str, list[str]]
"""The mode, content and stage of each file in git's index."""


def index(folder: Path) -> Index:
    """Return git's index of a folder."""
    found: Index = {}
    for row in git(folder, "ls-files", "--stage", "-z").split("\0")[:-1]:
        version, _, path = row.partition("\t")
        found.setdefault(path, []).append(version)
    return found


class Merge:
    """A merge of a project and a render, which both come from an older render."""

    def __init__(self, shadow: Path, before: Path, project: Path) -> None:
        """Store the older render and the project as they are now.

        Args:
            shadow: A folder for the repository in which git merges; it is replaced.
            before: The render of the project's version and answers.
            project: The project.
        """
        shutil.rmtree(shadow, ignore_errors=True)
        git(shadow.parent, "init", "--quiet", "--initial-branch=mine", str(shadow))
        self.shadow = shadow
        self._commit(before)
        git(shadow, "branch", "template")
        self._commit(project)

    def _commit(self, folder: Path) -> None:
        there = (f"--git-dir={self.shadow / '.git'}", "--work-tree=.")
        git(folder, *there, "add", "--all", "--force", ".")
        git(self.shadow, "commit", "--quiet", "--allow-empty", "--message", folder.name)

    def result(self, after: Path, *, directory_renames: bool = False) -> Index:
        """Merge, and return git's index.

        Args:
            after: The render of the new version and answers.
            directory_renames: Whether a file that one side added follows a folder that the other
                side renamed.
        """
        git(self.shadow, "symbolic-ref", "HEAD", "refs/heads/template")
        self._commit(after)
        git(self.shadow, "checkout", "--quiet", "--force", "mine")
        setting = f"merge.directoryRenames={str(directory_renames).lower()}"
        run("git", "-c", setting, "merge", "--quiet", "template", cwd=self.shadow)
        return index(self.shadow)


def differing(actual: Index, merged: Index) -> list[str]:
    """Return the files that differ from git's merge and have no conflict in it."""
    return [
        f"{path}: {actual.get(path)}, in git's merge {merged.get(path)}"
        for path in sorted(actual.keys() | merged.keys())
        if actual.get(path) != merged.get(path)
        and all(version.endswith("0") for version in merged.get(path, []))
    ]
