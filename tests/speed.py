"""Savings inside copier, for tests alone: they halve the time of a render and change no byte.

A render of some 500 files makes copier start git 500 times and render 3500 strings, nearly all of
them names of folders and files that hold nothing to render.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from copier._main import Worker


@contextmanager
def sped_up() -> Iterator[None]:
    """Speed up copier within the block."""
    # mypy takes a property's getter for what it gives.
    find: Any = vars(Worker)["answers_relpath"].fget
    render_anyway = Worker._render_string

    def render_string(self: Any, string: str, extra_context: Any = None) -> str:
        plain = "{" not in string and "\n" not in string
        return string if plain else str(render_anyway(self, string, extra_context))

    def answers_relpath(self: Any) -> Path:
        path = Path(self.answers_file or self.template.answers_relpath)
        return Path(find(self)) if "{" in str(path) else path

    with (
        patch.object(Worker, "_render_string", render_string),
        patch.object(Worker, "answers_relpath", property(answers_relpath)),
        # Asks git about executable bits, which it knows by itself unless core.fileMode is off.
        patch.object(Worker, "_sync_git_index_executable_bit", lambda *_: None),
    ):
        yield
