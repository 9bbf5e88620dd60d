"""Two savings inside copier, which halve the time of a render and change no byte of it.

A render of some 300 files makes copier start git 300 times and compile 2400 Jinja templates, of
which 600 are different. Both touch what is copier's own, so each is left out where copier changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import jinja2
from copier import _main as copier_main


@contextmanager
def fresh_render() -> Iterator[None]:
    """Speed up copier within the block, which renders into a new folder and in one thread."""
    with ExitStack() as stack:
        worker = getattr(copier_main, "Worker", None)
        # After each file copier asks git whether the index must follow its executable bit. In a
        # new folder no file is in the index, so the answer is always no.
        if hasattr(worker, "_sync_git_index_executable_bit"):
            stack.enter_context(
                patch.object(worker, "_sync_git_index_executable_bit", lambda *_: None)
            )
        stack.enter_context(patch.object(jinja2.Environment, "from_string", _remembering()))
        yield


def _remembering() -> Any:
    """`Environment.from_string` that compiles equal sources once per environment."""
    compile_anew = jinja2.Environment.from_string
    seen: dict[tuple[jinja2.Environment, str], jinja2.Template] = {}

    def from_string(
        self: jinja2.Environment, source: Any, *args: Any, **options: Any
    ) -> jinja2.Template:
        if not isinstance(source, str) or args or options:
            return compile_anew(self, source, *args, **options)
        if (self, source) not in seen:
            seen[self, source] = compile_anew(self, source)
        return seen[self, source]

    return from_string
