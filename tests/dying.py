"""Ends a process in the middle of its file operations."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from torchsmith import files as product_files
from torchsmith import git as product_git


class Dead(BaseException):
    """Simulates a killed process, which does not clean up."""


@contextmanager
def dying(moment: int, error: BaseException | None) -> Iterator[None]:
    """End the process at a file operation: with an exception, or as if it were killed."""
    steps = itertools.count(1)

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            now = next(steps)
            if now == moment and error:
                raise error
            if now >= moment and not error:
                raise Dead
            return function(*arguments, **named)

        return step

    with ExitStack() as patches:
        for name in ("replace", "rename", "unlink", "mkdir", "rmdir", "write_text"):
            patches.enter_context(patch.object(Path, name, counted(getattr(Path, name))))
        copying = {name: counted(getattr(shutil, name)) for name in ("copy2", "rmtree")}
        patches.enter_context(patch.object(product_files, "shutil", SimpleNamespace(**copying)))
        running = SimpleNamespace(**{**vars(subprocess), "run": counted(subprocess.run)})
        patches.enter_context(patch.object(product_git, "subprocess", running))
        yield
