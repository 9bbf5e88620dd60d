"""Words of the commands that are printed, which a shell takes as they are meant."""

from __future__ import annotations

import os
import shlex
from pathlib import Path


def quoted(text: str) -> str:
    """Return a word for a shell, in one line."""
    if text.isprintable():
        return shlex.quote(text)
    plain = (
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}"
        for byte in os.fsencode(text)
    )
    return f"$'{''.join(plain)}'"


def quoted_path(path: Path | str) -> str:
    """Return a path for a shell, which no command takes for an option."""
    return quoted(f"./{path}" if str(path).startswith("-") else str(path))
