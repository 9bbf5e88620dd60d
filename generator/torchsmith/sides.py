"""The three sides of a merge: the template's files before and after, and the user's.

What git's own merge would not do is done to the sides beforehand: then git merges file by file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torchsmith.git import Files


@dataclass
class Sides:
    """Files by path, on each side.

    Attributes:
        before: As the template rendered the version that the project has.
        mine: As the project has them.
        after: As the template renders what the project is to have.
    """

    before: Files
    mine: Files
    after: Files

    def follow(self, moves: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Move on the first two sides what the template moved, so that edits follow it.

        Where the user has another file at the new place, nothing follows.

        Args:
            moves: Old and new paths of files that the template may have moved.

        Returns:
            The new paths of the files with edits, by the old ones.
        """
        followed = {}
        for old, new in moves:
            moved = old in self.before and new in self.after
            there = old in self.after or new in self.before or new in self.mine
            if moved and not there:
                if self._edited(old):
                    followed[old] = new
                for side in (self.before, self.mine):
                    if old in side:
                        side[new] = side.pop(old)
        return followed

    def leave(self, path: str) -> None:
        """Take the template's new version of a file that the template writes for itself."""
        self.before[path] = self.mine[path]

    def keep_deleted(self) -> None:
        """Let what the user deleted stay away, even where the template has changed it."""
        for path in [path for path in self.before if path not in self.mine]:
            del self.before[path]
            self.after.pop(path, None)

    def lost(self) -> list[str]:
        """Return the files with edits that the template no longer has."""
        return sorted(path for path in self.before if path not in self.after and self._edited(path))

    def discard(self, paths: Iterable[str]) -> None:
        """Let files go as if the user had not edited them."""
        for path in paths:
            self.mine[path] = self.before[path]

    def _edited(self, path: str) -> bool:
        return path in self.mine and self.mine[path] != self.before[path]
