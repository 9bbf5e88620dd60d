"""Two savings inside copier, which halve the time of a render and change no byte of it.

A render of some 300 files makes copier start git 300 times and compile 2400 Jinja templates, of
which 600 are different. Both touch what is copier's own, so each is left out where copier changed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jinja2
from copier import _main as copier_main


@contextmanager
def sped_up(folder: Path) -> Iterator[None]:
    """Speed up copier within the block, which renders into ``folder`` and in one thread."""
    with ExitStack() as stack:
        worker = getattr(copier_main, "Worker", None)
        # For each file copier asks git whether the index must be told of its executable bit. It
        # must where git ignores the file's own mode, which a repository says once for all files.
        if hasattr(worker, "_sync_git_index_executable_bit") and not _ignores_modes(folder):
            stack.enter_context(
                patch.object(worker, "_sync_git_index_executable_bit", lambda *_: None)
            )
        stack.enter_context(patch.object(jinja2.Environment, "from_string", _remembering()))
        yield


def _ignores_modes(folder: Path) -> bool:
    if not folder.exists():
        return False
    command = ["git", "-C", str(folder), "config", "--type=bool", "--get", "core.fileMode"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() == "false"


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
