"""Writing into a project such that it is done whole, or as if nothing had been."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def put(source: Path, file: Path) -> None:
    """Put a copy of ``source`` in the place of ``file``, which is at no time written in part.

    Raises:
        OSError: The system refuses; ``file`` is as it was.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    staged = file.with_name(f".{file.name}.torchsmith")
    try:
        shutil.copy2(source, staged, follow_symlinks=False)
        staged.replace(file)
    finally:
        staged.unlink(missing_ok=True)


@contextmanager
def undone_on_failure(files: list[Path]) -> Iterator[None]:
    """Leave files and their folders as they were, or absent, if what is done to them fails."""
    before = {file: file.read_bytes() if file.exists() else None for file in files}
    absent = [folder for file in files for folder in file.parents if not folder.exists()]
    try:
        yield
    except BaseException:
        for file, content in before.items():
            if content is None:
                with suppress(FileNotFoundError, NotADirectoryError):
                    file.unlink()
            elif file.read_bytes() != content:
                file.write_bytes(content)
        for folder in absent:
            with suppress(OSError):
                folder.rmdir()
        raise
