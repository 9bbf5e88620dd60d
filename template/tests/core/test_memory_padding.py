"""Memory of a device that requires more alignment, and padding after each allocation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from backend import DEVICE
from changed_device import changed_device
from support import needs, run_python


@pytest.fixture(scope="module")
def padded_device(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of such a device: blocks are multiples of 8192 bytes, of which 4096
    are padding.
    """
    source = Path(__file__).with_name("padded_device.cpp")
    return changed_device(source, tmp_path_factory.mktemp("padded"))


@needs(torch.float32)
def test_blocks_are_aligned_and_end_with_the_padding(padded_device: dict[str, str]) -> None:
    run_python(
        f"""
        import torch
        backend = torch.{DEVICE}
        MIB = 2**20

        def take(size):
            return torch.empty(size // 4, device="{DEVICE}")

        def taken(size):
            before = backend.memory_allocated()
            tensor = take(size)
            return backend.memory_allocated() - before

        sizes = [4, 4096, 4100, 12288, MIB - 4096, MIB, 5 * MIB, 20 * MIB]
        steps = [1, 1, 2, 2, 128, 129, 641, 2561]
        assert [taken(size) for size in sizes] == [8192 * step for step in steps]

        tensors = [take(size) for size in sizes * 3]
        places = sorted((tensor.data_ptr(), tensor.nbytes) for tensor in tensors)
        assert all(place % 8192 == 0 for place, _ in places)
        ends = [place + size + 4096 for place, size in places]
        assert all(end <= place for end, (place, _) in zip(ends, places[1:]))
        for segment in backend.memory_snapshot():
            assert segment["total_size"] % 8192 == 0
            first, beyond = segment["address"], segment["address"] + segment["total_size"]
            own = [end for end, (place, _) in zip(ends, places) if first <= place < beyond]
            assert own and max(own) <= beyond
        assert backend.memory_stats()["requested_bytes.all.current"] == 3 * sum(sizes)
        """,
        padded_device,
    )


@needs(torch.float32)
def test_the_padding_counts_for_small_and_large(padded_device: dict[str, str]) -> None:
    run_python(
        f"""
        import torch
        backend = torch.{DEVICE}
        for size, kind in [(2**20 - 4096, "small"), (2**20, "large")]:
            tensor = torch.empty(size // 4, device="{DEVICE}")
            (segment,) = [
                item
                for item in backend.memory_snapshot()
                if item["address"] == tensor.data_ptr()
            ]
            assert segment["segment_type"] == kind, (size, segment)
        """,
        padded_device,
    )
