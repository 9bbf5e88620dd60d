"""Writing a file such that it is done whole, or as if nothing had been."""

from __future__ import annotations

import shutil
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
