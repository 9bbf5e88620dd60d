"""The user's edits to files that a new version of the template moves or no longer has."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torchsmith import git


@dataclass(frozen=True)
class Edits:
    """What the user made of the template's files.

    Attributes:
        tried: The clone of the project, updated.
        pristine: A render of the version that it had.
        start: Its commit before the update, which has the user's files.
    """

    tried: Path
    pristine: Path
    start: str

    def made(self, path: str) -> bool:
        """Whether the file is not as the template wrote it."""
        file = self.pristine / path
        return not file.is_file() or self._mine(path) != file.read_bytes()

    def follow(self, removed: Iterable[str], moves: Mapping[str, str]) -> dict[str, str]:
        """Merge edits of files that went away into what the template has in their place.

        Args:
            removed: The files that went away.
            moves: New paths of the template's files by old ones.

        Returns:
            The files whose edits found a new place, with that. Where both changed the same lines
            it has conflict markers.
        """
        followed = {}
        for path in removed:
            new = self.tried / moves.get(path, path)
            if new.is_file() and (self.pristine / path).is_file() and self.made(path):
                self._merge(path, moves[path])
                followed[path] = moves[path]
        return followed

    def keep(self, paths: Iterable[str]) -> None:
        """Put files back that went away: as a conflict, which git then wants resolved."""
        for path in paths:
            file = self.tried / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self._mine(path))
            base = self.pristine / path
            stages = {1: base.read_bytes()} if base.is_file() else {}
            git.add_unmerged(self.tried, path, {**stages, 2: self._mine(path)})

    def _merge(self, old: str, new: str) -> None:
        base, target = self.pristine / old, self.tried / new
        theirs = self.pristine.with_name("theirs")
        shutil.copy2(target, theirs)
        target.write_bytes(self._mine(old))
        names = ("before updating", "last update", "after updating")
        if git.merge_file(target, base, theirs, names):
            stages = {1: base.read_bytes(), 2: self._mine(old), 3: theirs.read_bytes()}
            git.add_unmerged(self.tried, new, stages)

    def _mine(self, path: str) -> bytes:
        return git.content(self.tried, self.start, path)
