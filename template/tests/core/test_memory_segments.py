"""How the allocator splits segments into blocks and joins blocks, tested in private pools."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import MIB, needs, needs_two_devices, take

pytestmark = pytest.mark.usefixtures("full_segments")

STEP = 512
SMALL_SEGMENT, LARGE_SEGMENT = 2 * MIB, 20 * MIB


class Pool:
    """A private pool and its segments."""

    def __init__(self) -> None:
        self.pool = backend.MemPool()

    def take(self, size: int) -> torch.Tensor:
        with backend.use_mem_pool(self.pool):
            return take(size)

    def segments(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.pool.snapshot()
        return found

    def blocks(self) -> list[tuple[int, str]]:
        """Return the size and the state of each block of the pool's only segment."""
        (segment,) = self.segments()
        return [(block["size"], block["state"]) for block in segment["blocks"]]


@pytest.fixture
def pool() -> Pool:
    return Pool()


USED, FREE = "active_allocated", "inactive"


def test_small_tensors_share_a_segment(pool: Pool) -> None:
    tensors = [pool.take(size) for size in (8, 512, 520, 4000)]
    places = [tensor.data_ptr() for tensor in tensors]
    assert [after - before for before, after in pairwise(places)] == [STEP, STEP, 2 * STEP]
    (segment,) = pool.segments()
    assert (segment["total_size"], segment["segment_type"]) == (SMALL_SEGMENT, "small")
    assert segment["address"] == places[0]
    assert segment["allocated_size"] == 12 * STEP
    assert segment["requested_size"] == sum(tensor.nbytes for tensor in tensors)


def test_free_neighbours_are_merged(pool: Pool) -> None:
    first, second, third, last = (pool.take(1024) for _ in range(4))
    rest = SMALL_SEGMENT - 4 * 1024
    assert last.nbytes == 1024
    del second
    assert pool.blocks() == [
        (1024, USED),
        (1024, FREE),
        (1024, USED),
        (1024, USED),
        (rest, FREE),
    ]
    del third
    assert pool.blocks() == [(1024, USED), (2048, FREE), (1024, USED), (rest, FREE)]
    del first
    assert pool.blocks() == [(3 * 1024, FREE), (1024, USED), (rest, FREE)]
    del last
    assert pool.blocks() == [(SMALL_SEGMENT, FREE)]


def test_the_smallest_sufficient_block_is_used(pool: Pool) -> None:
    tensors = [pool.take(size) for size in (4096, 512, 1024, 512, 2048, 512)]
    places = [tensor.data_ptr() for tensor in tensors]
    for index in (0, 2, 4):
        tensors[index] = torch.empty(0)
    assert pool.take(1536).data_ptr() == places[4]
    kept = [pool.take(1024), pool.take(2048), pool.take(2048), pool.take(2048)]
    assert [tensor.data_ptr() for tensor in kept[:2]] == [places[2], places[4]]
    assert [tensor.data_ptr() for tensor in kept[2:]] == [places[0], places[0] + 2048]


def test_large_tensors_share_a_segment_and_larger_ones_have_their_own(pool: Pool) -> None:
    shared = [pool.take(3 * MIB), pool.take(5 * MIB)]
    own = pool.take(13 * MIB)
    odd = pool.take(21 * MIB)
    sizes = sorted(segment["total_size"] for segment in pool.segments())
    assert sizes == [14 * MIB, LARGE_SEGMENT, 22 * MIB]
    assert {segment["segment_type"] for segment in pool.segments()} == {"large"}
    assert shared[1].data_ptr() == shared[0].data_ptr() + 3 * MIB
    assert own.nbytes + odd.nbytes == 34 * MIB


def test_small_tensors_do_not_break_up_large_segments(pool: Pool) -> None:
    large = pool.take(5 * MIB)
    small = pool.take(MIB)
    assert [segment["segment_type"] for segment in pool.segments()].count("small") == 1
    del large
    again = pool.take(8)
    kinds = {segment["segment_type"]: segment for segment in pool.segments()}
    assert kinds["large"]["allocated_size"] == 0
    assert kinds["small"]["allocated_size"] == MIB + STEP
    assert again.nbytes + small.nbytes == MIB + 8


def test_a_large_block_is_not_split_for_a_small_rest(pool: Pool) -> None:
    tensor = pool.take(20 * MIB)
    del tensor
    nearly = pool.take(19 * MIB)
    assert pool.blocks() == [(20 * MIB, USED)]
    del nearly
    smaller = pool.take(19 * MIB - STEP)
    assert pool.blocks() == [(19 * MIB - STEP, USED), (MIB + STEP, FREE)]
    assert smaller.nbytes == 19 * MIB - STEP


def test_free_parts_of_segments_are_counted(pool: Pool) -> None:
    def free_parts() -> tuple[int, int]:
        figures = backend.memory_stats()
        return (
            figures["inactive_split.small_pool.current"],
            figures["inactive_split_bytes.small_pool.current"],
        )

    count, size = free_parts()
    tensors = [pool.take(1024) for _ in range(3)]
    assert free_parts() == (count + 1, size + SMALL_SEGMENT - 3 * 1024)
    del tensors[1]
    assert free_parts() == (count + 2, size + SMALL_SEGMENT - 2 * 1024)
    del tensors[1]
    assert free_parts() == (count + 1, size + SMALL_SEGMENT - 1024)
    tensors.clear()
    assert free_parts() == (count, size)


def test_segments_with_a_tensor_stay_when_the_cache_is_emptied() -> None:
    backend.empty_cache()
    reserved = backend.memory_reserved()
    first, second = take(11 * MIB), take(11 * MIB)
    assert backend.memory_reserved() == reserved + 24 * MIB
    del first
    backend.empty_cache()
    assert backend.memory_reserved() == reserved + 12 * MIB
    assert second.nbytes == 11 * MIB


# --- Merged segments ---


def test_small_free_segments_are_replaced_by_a_large_one() -> None:
    reserved = backend.memory_reserved()
    tensors = [take(size * MIB) for size in (12, 14, 30)]
    del tensors[:2]
    before = backend.memory_stats()
    merged = take(25 * MIB)
    after = backend.memory_stats()
    assert backend.memory_reserved() == reserved + 56 * MIB
    assert after["num_device_free"] == before["num_device_free"] + 2
    assert after["num_device_alloc"] == before["num_device_alloc"] + 1
    (segment,) = [
        item for item in backend.memory_snapshot() if item["address"] == merged.data_ptr()
    ]
    assert segment["total_size"] == 26 * MIB


def test_only_as_many_segments_as_needed_are_freed() -> None:
    tensors = [take(30 * MIB) for _ in range(4)]
    tensors.clear()
    merged = take(50 * MIB)
    sizes = [item["total_size"] for item in backend.memory_snapshot()]
    assert sizes.count(60 * MIB) == 1
    assert sizes.count(30 * MIB) == 2
    assert merged.nbytes == 50 * MIB


def test_free_segments_that_are_too_small_together_are_kept() -> None:
    reserved = backend.memory_reserved()
    tensors = [take(12 * MIB), take(12 * MIB)]
    tensors.clear()
    larger = take(26 * MIB)
    assert backend.memory_reserved() == reserved + 50 * MIB
    assert larger.nbytes == 26 * MIB


def test_only_free_segments_of_the_stream_and_pool_are_replaced(pool: Pool) -> None:
    stream = backend.Stream()
    kept = take(3 * MIB)
    with backend.stream(stream):
        take(20 * MIB)
    pool.take(20 * MIB)
    freed = backend.memory_stats()["num_device_free"]
    larger = [take(24 * MIB), pool.take(24 * MIB)]
    assert backend.memory_stats()["num_device_free"] == freed
    assert len(pool.segments()) == 2
    assert kept.nbytes + sum(tensor.nbytes for tensor in larger) == 51 * MIB


def test_a_private_pool_keeps_its_addresses(pool: Pool) -> None:
    tensors = [pool.take(12 * MIB), pool.take(14 * MIB)]
    places = {tensor.data_ptr() for tensor in tensors}
    tensors.clear()
    assert pool.take(25 * MIB).nbytes == 25 * MIB
    assert places < {segment["address"] for segment in pool.segments()}


def test_a_program_with_varying_sizes_stops_allocating_segments() -> None:
    draws = random.Random(0)
    sizes = [draws.randrange(2 * MIB, 40 * MIB, 4) for _ in range(12)]

    def step() -> int:
        """Return the number of allocations of the device."""
        draws.shuffle(sizes)
        kept: list[torch.Tensor] = []
        before = backend.memory_stats()["num_device_alloc"]
        for size in sizes:
            kept = [*kept[-3:], take(size)]
        return int(backend.memory_stats()["num_device_alloc"] - before)

    asked = [step() for _ in range(60)]
    assert sum(asked[30:]) == 0, asked


@contextmanager
def figures_of_segments(pool: Pool) -> Iterator[None]:
    yield
    private = backend.memory_stats_as_nested_dict()["reserved_bytes_by_private_pools"]
    total = sum(segment["total_size"] for segment in pool.segments())
    assert private[pool.pool.id]["all"]["current"] == total


@needs(torch.uint8)
@pytest.mark.parametrize("seed", range(4))
def test_blocks_cover_their_segments_and_never_overlap(pool: Pool, seed: int) -> None:
    draws = random.Random(seed)
    kept: dict[int, tuple[torch.Tensor, int]] = {}
    with figures_of_segments(pool):
        for step in range(400):
            if draws.random() < 0.45 and kept:
                del kept[draws.choice(list(kept))]
                continue
            size = draws.choice((4, 600, 5000, 70_000, MIB, MIB + 4, 4 * MIB, 12 * MIB))
            tensor = pool.take(draws.randrange(4, size + 4, 4)).view(torch.uint8)
            value = step % 256
            kept[step] = tensor.fill_(value), value
            if sum(tensor.nbytes for tensor, _ in kept.values()) > 200 * MIB:
                kept.clear()
    for segment in pool.segments():
        place = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == place
            assert block["size"] % STEP == 0 and block["size"] >= block["requested_size"]
            place += block["size"]
        assert place == segment["address"] + segment["total_size"]
        states = [block["state"] for block in segment["blocks"]]
        assert ("inactive", "inactive") not in pairwise(states)
    used = {
        block["address"]: block["requested_size"]
        for segment in pool.segments()
        for block in segment["blocks"]
        if block["state"] == USED
    }
    assert used == {tensor.data_ptr(): tensor.nbytes for tensor, _ in kept.values()}
    for tensor, value in kept.values():
        assert tensor.eq(value).all()


# --- Private pools ---


def test_a_private_pool_does_not_share_segments(pool: Pool) -> None:
    common = take(3 * MIB)
    inside = pool.take(3 * MIB)
    outside = take(3 * MIB)
    (segment,) = pool.segments()
    assert segment["address"] == inside.data_ptr()
    assert segment["segment_pool_id"] == pool.pool.id != (0, 0)
    place = inside.data_ptr()
    del inside
    assert take(3 * MIB).data_ptr() != place
    assert pool.take(3 * MIB).data_ptr() == place
    assert common.nbytes == outside.nbytes
    assert segment["address"] in [item["address"] for item in backend.memory_snapshot()]


def test_a_pool_keeps_its_memory_while_it_is_used(pool: Pool) -> None:
    assert pool.pool.use_count() == 1
    with backend.use_mem_pool(pool.pool):
        assert pool.pool.use_count() == 2
        take(3 * MIB)
    assert pool.pool.use_count() == 1
    backend.empty_cache()
    assert len(pool.segments()) == 1
    reserved = backend.memory_reserved()
    pool_id = pool.pool.id
    del pool.pool
    gc.collect()
    assert backend.memory_reserved() == reserved - LARGE_SEGMENT
    assert backend.memory_snapshot(pool_id) == []


def test_tensors_outlive_their_pool(pool: Pool) -> None:
    tensor = pool.take(3 * MIB)
    pool_id = pool.pool.id
    del pool.pool
    gc.collect()
    assert len(backend.memory_snapshot(pool_id)) == 1
    del tensor
    backend.empty_cache()
    assert backend.memory_snapshot(pool_id) == []


def test_pools_nest(pool: Pool) -> None:
    other = backend.MemPool()
    with backend.use_mem_pool(pool.pool):
        first = take(8)
        with backend.use_mem_pool(other):
            second = take(8)
        third = take(8)
    places = {tensor.data_ptr() for tensor in (first, third)}
    (mine,), (its,) = pool.segments(), other.snapshot()
    assert mine["allocated_size"] == 2 * STEP
    assert its["allocated_size"] == STEP and its["address"] == second.data_ptr()
    assert len(places) == 2


@needs_two_devices
def test_a_pool_is_used_for_one_device(pool: Pool) -> None:
    with backend.use_mem_pool(pool.pool, device=0):
        tensor = take(8, f"{DEVICE}:1")
    assert pool.segments() == []
    assert tensor.nbytes == 8
