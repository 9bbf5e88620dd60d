"""Diffs for a terminal: renamed files, and the text of changed files."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from typing import NamedTuple

from torchsmith.commands.common import console

WHOLE = ("new file mode", "deleted file mode")
"""Lines in git's output for a new or deleted file."""


class Section(NamedTuple):
    """The output of `git diff` for one file.

    Attributes:
        text: The lines.
        renamed: The paths before and after, or None.
        whole: Whether the file is new or deleted.
    """

    text: str
    renamed: tuple[str, str] | None
    whole: bool


def sections(diff: str) -> Iterator[Section]:
    """Split the output of `git diff` by file."""
    for text in re.split(r"(?m)^(?=diff --git )", diff):
        if text:
            head, _, _ = text.partition("\n@@")
            names = re.search(r"(?m)^rename from (.*)\nrename to (.*)$", head)
            whole = any(f"\n{words}" in head for words in WHOLE)
            yield Section(text, (names[1], names[2]) if names else None, whole)


def renames(diff: str) -> dict[str, str]:
    """Return the paths of renamed files, before and after."""
    return dict(each.renamed for each in sections(diff) if each.renamed)


def of_changed_files(diff: str) -> str:
    """Return a diff without new and deleted files."""
    return "".join(each.text for each in sections(diff) if not each.whole)


def show(diff: str) -> None:
    """Print a diff; on a terminal in colour, with the user's pager."""
    out = console()
    if not out.is_terminal:
        print(diff, end="")
        return
    styles = {"+": "green", "-": "red", "@": "cyan"}
    os.environ.setdefault("LESS", "FRX")  # as git sets it
    for pager in ("MANPAGER", "PAGER"):  # in this order, Python uses them
        program = re.match(r"[\w./-]+(?!\S)", os.environ.get(pager, ""))
        if program and shutil.which(program[0]) is None:  # the shell would print an error alone
            del os.environ[pager]
    with out.pager(styles=True):
        for line in diff.splitlines():
            out.print(line, style=styles.get(line[:1]), soft_wrap=True)
