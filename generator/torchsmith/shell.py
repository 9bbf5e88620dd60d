"""Quotes words of printed commands for a shell."""

from __future__ import annotations

import os
import shlex
from pathlib import Path


def quoted(text: str) -> str:
    """Return a word quoted for a shell, on one line."""
    if text.isprintable():
        return shlex.quote(text)
    plain = (
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}"
        for byte in os.fsencode(text)
    )
    return f"$'{''.join(plain)}'"


def quoted_path(path: Path | str) -> str:
    """Return a path quoted for a shell, which no command reads as an option."""
    return quoted(f"./{path}" if str(path).startswith("-") else str(path))
