"""The three sides of a merge: the template's files before and after, and the user's.

The paths of all sides are those that the result will have, so that git merges path by path: what
the template moved is moved on the user's side, what the user renamed is renamed on the template's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from torchsmith.git import Files

Moves = Sequence[tuple[str, str]]
"""Old and new paths of files that may have moved."""


@dataclass
class Sides:
    """Files by path, on each side, and what had to be done to them.

    Attributes:
        before: As the template rendered the version that the project has.
        mine: As the project has them.
        after: As the template renders what the project is to have.
        moved: Files with edits, and files of the user's own, that go where the template moved its
            files to.
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
        """Give the template's files the names that the user gave them.

        Where the template has another file there, nothing follows.

        Args:
            renames: What the user renamed.
            moves: Files that the template may have moved.
        """
        for old, here in renames.items():
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
        """Move on the first two sides what the template moved, so that edits follow it.

        Where the user has another file at the new place, nothing follows.
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
        """Take along what the user added or renamed where the folders that it is in are renamed."""
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
        """Take the template's new version of a file that the template writes for itself."""
        self.before[path] = self.mine[path]

    def keep_deleted(self) -> None:
        """Let what the user deleted stay away, even where the template has changed it."""
        for path in [path for path in self.before if path not in self.mine]:
            before, after = self.before.pop(path), self.after.pop(path, None)
            if after not in (None, before):
                self.deleted.append(path)

    def lost(self) -> Files:
        """Take out what the template no longer has, and return what of it holds edits."""
        gone = [path for path in self.before if path not in self.after]
        lost = {path: self.mine[path] for path in gone if self._edited(path)}
        for path in gone:
            del self.before[path], self.mine[path]
        return lost

    def _edited(self, path: str) -> bool:
        return path in self.mine and self.mine[path] != self.before[path]


def collides(path: str, files: Iterable[str]) -> bool:
    """Whether a path is taken: by a file, by a folder, or by a file where a folder is needed."""
    above = {path, *(parent.as_posix() for parent in PurePosixPath(path).parents)}
    return any(file in above or file.startswith(f"{path}/") for file in files)


def renamed_paths(
    before: Iterable[str], after: Iterable[str], parts: Mapping[str, str]
) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Find what moves because parts of paths have other names: files, and the folders above.

    Args:
        before: Paths that were.
        after: Paths that are.
        parts: Parts of paths, each with its new name.
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
