"""Simulates CUDA's allocator with default settings, to compare the memory that it reserves."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

MIB = 2**20
STEP = 512
SMALL_SEGMENT, SHARED_SEGMENT, SEGMENT_STEP = 2 * MIB, 20 * MIB, 2 * MIB


@dataclass
class Block:
    """A piece of a segment, and the addresses of its neighbours."""

    size: int
    kind: tuple[int, bool]  # its stream, and whether it is small
    previous: int | None = None
    next: int | None = None
    free: bool = True


class CudaPolicy:
    """Best fit in segments of one stream, for small or large blocks. Free neighbours are merged."""

    def __init__(self) -> None:
        self.reserved = 0
        self._blocks: dict[int, Block] = {}
        self._free: dict[tuple[int, bool], list[tuple[int, int]]] = {}
        self._end = 0

    def take(self, size: int, stream: int) -> tuple[int, int]:
        """Return the address and the size of a block for ``size`` bytes."""
        size = -(-size // STEP) * STEP
        kind = (stream, size <= MIB)
        free = self._free.setdefault(kind, [])
        if bisect_left(free, (size, 0)) == len(free):
            self._reserve(size, kind)
        _, address = free.pop(bisect_left(free, (size, 0)))
        block = self._blocks[address]
        block.free = False
        rest = block.size - size
        if rest > MIB or (kind[1] and rest >= STEP):
            self._split(address, size)
        return address, block.size

    def give_back(self, address: int) -> None:
        """Free a block."""
        block = self._blocks[address]
        block.free = True
        if block.next is not None and self._blocks[block.next].free:
            self._leave(block.next)
            self._join(address)
        if block.previous is not None and self._blocks[block.previous].free:
            address = block.previous
            self._leave(address)
            self._join(address)
        self._enter(address)

    def _reserve(self, size: int, kind: tuple[int, bool]) -> None:
        if kind[1]:
            size = SMALL_SEGMENT
        elif size < SHARED_SEGMENT // 2:
            size = SHARED_SEGMENT
        else:
            size = -(-size // SEGMENT_STEP) * SEGMENT_STEP
        self._blocks[self._end] = Block(size, kind)
        self._enter(self._end)
        self._end += size
        self.reserved += size

    def _enter(self, address: int) -> None:
        block = self._blocks[address]
        insort(self._free[block.kind], (block.size, address))

    def _leave(self, address: int) -> None:
        block = self._blocks[address]
        free = self._free[block.kind]
        free.pop(bisect_left(free, (block.size, address)))

    def _split(self, address: int, size: int) -> None:
        block, rest = self._blocks[address], address + size
        self._blocks[rest] = Block(block.size - size, block.kind, address, block.next)
        if block.next is not None:
            self._blocks[block.next].previous = rest
        block.size, block.next = size, rest
        self._enter(rest)

    def _join(self, address: int) -> None:
        block = self._blocks[address]
        assert block.next is not None
        joined = self._blocks.pop(block.next)
        block.size += joined.size
        block.next = joined.next
        if joined.next is not None:
            self._blocks[joined.next].previous = address
