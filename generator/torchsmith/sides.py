"""The three sides of a merge: the template's files before and after, and the user's.

All sides use the paths of the result, so that git merges path by path. Files that the template
moved are moved on the user's side. Files that the user renamed are renamed on the template's side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from torchsmith.git import Files

Moves = Sequence[tuple[str, str]]
"""Old and new paths of files that may have moved."""

OWN = ("device/*", "csrc/operators", "tests/operators")
"""The user's own folders, except for those of the template in `device`."""


@dataclass
class Sides:
    """Files by path, on each side, and how their paths were changed.

    Attributes:
        before: The render of the project's version of the template.
        mine: The project's files.
        after: The render that the project is updated to.
        moved: Files with the user's edits, and the user's own files, that move with the template's
            files.
        renamed: Files that the user renamed, by the template's paths.
        orphaned: Files that the user renamed and the template no longer has, by the user's paths.
        deleted: Files that the user deleted and the template changed.
    """

    before: Files
    mine: Files
    after: Files
    moved: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    orphaned: dict[str, str] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)

    def rename(self, renames: Mapping[str, str], moves: Moves) -> None:
        """Rename the template's files as the user renamed them.

        A file is not renamed if the template has another one at the new path. One that the user
        copied to a folder of their own is no rename, even if they deleted the first.

        Args:
            renames: Files that the user renamed, with their new paths.
            moves: Files that the template may have moved.
        """
        own = self._of_own(renames.values())
        for old, here in renames.items():
            if here in own:
                continue
            there = next((new for was, new in [(old, old), *moves] if was == old and
                          new in self.after), None)  # fmt: skip
            if there is None:
                del self.before[old]
                self.orphaned[here] = old
            elif here == there or not collides(here, self.after):
                self.before[here] = self.before.pop(old)
                self.after[here] = self.after.pop(there)
                self.renamed[old] = here

    def follow(self, moves: Moves) -> None:
        """Move files that the template moved on the first two sides, so that edits follow them.

        A file is not moved if the user has another one at the new path.
        """
        for old, new in moves:
            moved = old in self.before and new in self.after
            there = old in self.after or new in self.before or new in self.mine
            if moved and not there:
                if self._edited(old):
                    self.moved[old] = new
                for side in (self.before, self.mine):
                    if old in side:
                        side[new] = side.pop(old)

    def carry(self, folders: Mapping[str, str]) -> None:
        """Move files that the user added or renamed, if their folders are renamed."""
        named = {here: old for old, here in self.renamed.items()}
        for path in [path for path in self.mine if path not in self.before or path in named]:
            for old, new in folders.items():
                target = f"{new}/{path.removeprefix(f'{old}/')}"
                free = target not in self.mine and target not in self.after
                if path.startswith(f"{old}/") and free:
                    for side in (self.before, self.mine, self.after):
                        if path in side:
                            side[target] = side.pop(path)
                    self.moved[path] = target
                    if path in named:
                        self.renamed[named[path]] = target
                    break

    def leave(self, path: str) -> None:
        """Use the template's new version of a file, without the user's edits."""
        self.before[path] = self.mine[path]

    def keep_deleted(self) -> None:
        """Keep the user's deleted files deleted, even if the template has changed them."""
        for path in [path for path in self.before if path not in self.mine]:
            before, after = self.before.pop(path), self.after.pop(path, None)
            if after not in (None, before):
                self.deleted.append(path)

    def lost(self) -> Files:
        """Remove files that the template no longer has, and return those with edits."""
        gone = [path for path in self.before if path not in self.after]
        lost = {path: self.mine[path] for path in gone if self._edited(path)}
        for path in gone:
            del self.before[path], self.mine[path]
        return lost

    def _of_own(self, paths: Iterable[str]) -> set[str]:
        """Return the files that are in the user's own folders."""
        found = set()
        for path in paths:
            folder = "/".join(path.split("/")[:2])
            if folder != path and any(PurePosixPath(folder).match(each) for each in OWN):
                taken = (*self.before, *self.after)
                found |= set() if any(file.startswith(f"{folder}/") for file in taken) else {path}
        return found

    def _edited(self, path: str) -> bool:
        return path in self.mine and self.mine[path] != self.before[path]


def collides(path: str, files: Iterable[str]) -> bool:
    """Whether a path is taken: by a file, by a folder, or by a file where a folder is needed."""
    above = {path, *(parent.as_posix() for parent in PurePosixPath(path).parents)}
    return any(file in above or file.startswith(f"{path}/") for file in files)


def renamed_paths(
    before: Iterable[str], after: Iterable[str], parts: Mapping[str, str]
) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Return the files and the folders that move because parts of their paths are renamed.

    Args:
        before: The old paths.
        after: The new paths.
        parts: Renamed parts of paths, with their new names.
    """
    files, folders, known = [], {}, set(after)
    for path in before:
        words = path.split("/")
        new = [parts.get(word, word) for word in words]
        if path not in known and "/".join(new) in known:
            files.append((path, "/".join(new)))
            for number, word in enumerate(words[:-1], 1):
                if word in parts:
                    folders["/".join(words[:number])] = "/".join(new[:number])
    return files, folders
