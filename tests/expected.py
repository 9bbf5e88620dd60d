"""What a merge of a project gives, file by file: what the histories of updates are held to."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from invented import RELEASES

ANSWERS, MANIFEST = ".copier-answers.yml", ".torchsmith.yml"
Tree = dict[str, bytes]


@dataclass
class Expected:
    """What a merge of each file by itself gives.

    Attributes:
        files: Path and content.
        conflicts: Files in conflict, with the lines that the user wrote in them.
        lost: Files with edits that the template no longer has.
        deleted: Files that the user deleted and the template changed.
        renamed: Files that take what the template changed where the user renamed them to.
    """

    files: Tree = field(default_factory=dict)
    conflicts: dict[str, set[bytes]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    def merge(self, path: str, before: bytes, mine: bytes, after: bytes, scratch: Path) -> None:
        """Merge three versions of a file."""
        if mine in (before, after):
            self.files[path] = after
        elif before == after:
            self.files[path] = mine
        else:
            names = [scratch / name for name in ("mine", "before", "after")]
            for name, text in zip(names, (mine, before, after), strict=True):
                name.write_bytes(text)
            done = subprocess.run(["git", "merge-file", "-p", *map(str, names)],
                                  capture_output=True)  # fmt: skip
            if done.returncode == 0:
                self.files[path] = done.stdout
            else:
                self.conflicts[path] = set(mine.splitlines()) - set(before.splitlines())


def expectation(
    sides: tuple[Tree, Tree, Tree], tags: tuple[str, str], discard: bool, scratch: Path
) -> Expected:
    """Merge a project, file by file, knowing what each file of the template is."""
    before, mine, after = sides
    old, new = (RELEASES[tag].files for tag in tags)
    expected = Expected({ANSWERS: after[ANSWERS], MANIFEST: after[MANIFEST]})
    rest = {path: text for path, text in mine.items() if path not in expected.files}
    both, gone, came = [], [], []
    renames = renamed(before, mine, scratch)
    for id in {*old, *new}:
        was, now = old.get(id, ("",))[0], new.get(id, ("",))[0]
        was, now = was if was in before else "", now if now in after else ""
        here = renames.get(was, "")
        if here and now and (here == now or here not in after):
            expected.merge(here, before[was], rest.pop(here), after[now], scratch)
            if expected.files.get(here) != mine[here]:
                expected.renamed[was] = here
        elif here and not now:
            pass  # it is the user's own from now on
        elif was and now and (was == now or (now not in before and now not in mine)):
            both.append((was, now))
        else:
            gone += [was] if was else []
            came += [now] if now else []
    for was, now in both:
        if was in rest:
            expected.merge(now, before[was], rest.pop(was), after[now], scratch)
        elif before[was] != after[now]:
            expected.deleted.append(now)
    for path in gone:
        text = rest.pop(path, None)
        if path in came:  # one file takes another's place
            came.remove(path)
            if text is not None:
                expected.merge(path, before[path], text, after[path], scratch)
        elif text is not None and text != before[path]:
            expected.lost.append(path)
            if not discard:
                expected.conflicts[path] = set(text.splitlines())
    for path in came:
        if path in rest:
            expected.merge(path, b"", rest.pop(path), after[path], scratch)
        else:
            expected.files[path] = after[path]
    expected.files |= rest
    return expected


def renamed(before: Tree, mine: Tree, scratch: Path) -> dict[str, str]:
    """Return what the user renamed, as git finds it, by the old paths."""
    for name, tree in (("was", before), ("is", mine)):
        shutil.rmtree(scratch / name, ignore_errors=True)
        for path, text in tree.items():
            (scratch / name / path).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name / path).write_bytes(text)
    done = subprocess.run(
        ["git", "diff", "--no-index", "--find-renames", "--no-rename-empty", "--name-status", "-z",
         "--diff-filter=R", "was", "is"],
        cwd=scratch, capture_output=True, text=True,
    )  # fmt: skip
    words = done.stdout.split("\0")[:-1]
    return {
        old.removeprefix("was/"): new.removeprefix("is/")
        for old, new in zip(words[1::3], words[2::3], strict=True)
    }


def carried(answers: dict[str, Any], tag: str) -> dict[str, Any]:
    """The answers that another release has of those to this one."""
    questions = RELEASES[tag].questions
    known = {"backend_name", "preset", "features", *questions}
    now = {name: answer for name, answer in answers.items() if name in known}
    if "vendor" in questions and "vendor" not in now:
        now["vendor"] = answers.get("owner", "nobody")
    return now
