"""Finds kernels whose C++ types differ from those of their operator in a PyTorch release."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# PyTorch ends a process that registers a kernel with other types than the operator's. The kernels
# of these operators must use an alias of csrc/core/compat.h.
FOLLOWED = {"_scaled_mm_v2": "ScaleList", "_scaled_grouped_mm_v2": "ScaleList"}

REGISTERED = re.compile(r'\bm\.impl\(\s*"(?:aten::)?(\w+)(?:\.(\w+))?",\s*&')
SCHEMA = re.compile(
    r'using schema = (?P<types>[^;]*);.*?name = "aten::\w+";'
    r'.*?overload_name = "(?P<overload>\w*)";',
    re.S,
)


def differing(csrc: Path, tested: Path, torch: Path) -> Iterator[str]:
    """Yield each operator whose types differ and whose file does not use the alias.

    ``tested`` and ``torch`` are folders that contain ``torch/``: of the release that the sources
    are written for, and of another one.
    """
    for file in sorted(csrc.rglob("*.cpp")):
        text = file.read_text("utf-8")
        for match in REGISTERED.finditer(text):
            name, overload = match[1], match[2] or ""
            ours, theirs = _types(tested, name).get(overload), _types(torch, name).get(overload)
            alias = FOLLOWED.get(name)
            follows = alias is not None and f"compat::{alias}" in text
            if ours and theirs and ours != theirs and not follows:
                yield f"{file.relative_to(csrc)}: {name} is {theirs}, where {ours} was meant"


@cache
def _types(torch: Path, name: str) -> dict[str, str]:
    """Return the C++ types of an operator's variants, by the names of the overloads."""
    header = torch / "torch" / "include" / "ATen" / "ops" / f"{name}_ops.h"
    text = header.read_text("utf-8") if header.is_file() else ""
    return {match["overload"]: match["types"] for match in SCHEMA.finditer(text)}
