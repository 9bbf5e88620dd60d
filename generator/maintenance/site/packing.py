"""Packs text by packer/packer.wasm, by which the page unpacks it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import wasmtime

PACKER = Path(__file__).parent / "packer" / "packer.wasm"
# Characters are below; each that the text has costs the page a fraction of a byte.
CHARACTERS = 1 << 12


class _Packer:
    """The packer's memory and functions, of which one call is made."""

    def __init__(self) -> None:
        self._store = wasmtime.Store()
        module = wasmtime.Module.from_file(self._store.engine, str(PACKER))
        self._exports = wasmtime.Instance(self._store, module, []).exports(self._store)

    def call(self, name: str, *arguments: int) -> int:
        function: Any = self._exports[name]
        return int(function(self._store, *arguments))

    def read(self, address: int, size: int) -> bytes:
        memory: Any = self._exports["memory"]
        return bytes(memory.read(self._store, address, address + size))

    def write(self, address: int, data: bytes) -> None:
        memory: Any = self._exports["memory"]
        memory.write(self._store, data, address)


def pack(text: str) -> bytes:
    """Return the text packed: how many characters it has, and what the packer makes of them."""
    last = max(map(ord, text), default=0)
    if last >= CHARACTERS:
        raise ValueError(f"the packer knows characters below U+{CHARACTERS:04X}, not U+{last:04X}")
    packer = _Packer()
    data = text.encode("utf-16-le")
    source = packer.call("allocate_text", len(text))
    packer.write(source, data)
    # A character is a bit at least, and 16 bits, or somewhat more, at most.
    target = packer.call("allocate", 2 * len(data) + 4096)
    size = packer.call("pack", source, len(text), target)
    return struct.pack("<I", len(text)) + packer.read(target, size)


def unpack(packed: bytes) -> str:
    """Return the text that `pack` was given."""
    packer = _Packer()
    (count,) = struct.unpack_from("<I", packed)
    source = packer.call("allocate", len(packed))
    packer.write(source, packed[4:])
    target = packer.call("allocate_text", count)
    packer.call("unpack", source, len(packed) - 4, target, count)
    return packer.read(target, 2 * count).decode("utf-16-le")
