"""The allocator's figures, its cache, running out of memory, and leaks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import needs, needs_two_devices, pick_by_index, run_python, supported

MIB = 2**20


def take(size: int, device: str = DEVICE) -> torch.Tensor:
    """Return a tensor of ``size`` bytes, of whatever dtype there is."""
    dtype = supported()[0]
    return torch.empty(size // dtype.itemsize, dtype=dtype, device=device)


@pytest.fixture(autouse=True)
def quiet_allocator() -> None:
    gc.collect()
    backend.synchronize()
    backend.empty_cache()
    backend.reset_peak_memory_stats()
    backend.reset_accumulated_memory_stats()


def test_tensor_counts_as_allocated_while_it_lives() -> None:
    before = backend.memory_allocated()
    tensor = take(8 * MIB)
    assert backend.memory_allocated() == before + 8 * MIB
    del tensor
    assert backend.memory_allocated() == before


def test_freed_memory_stays_reserved_until_the_cache_is_emptied() -> None:
    before = backend.memory_reserved()
    tensor = take(8 * MIB)
    del tensor
    assert backend.memory_reserved() >= before + 8 * MIB
    backend.empty_cache()
    assert backend.memory_reserved() == before


def test_freed_memory_is_used_again() -> None:
    first = take(8 * MIB)
    address = first.data_ptr()
    reserved = backend.memory_reserved()
    del first
    second = take(8 * MIB)
    assert second.data_ptr() == address
    assert backend.memory_reserved() == reserved


def test_peak_is_the_largest_value_since_the_reset() -> None:
    before = backend.memory_allocated()
    tensor = take(16 * MIB)
    del tensor
    assert backend.max_memory_allocated() == before + 16 * MIB
    assert backend.max_memory_reserved() >= before + 16 * MIB
    backend.reset_peak_memory_stats()
    assert backend.max_memory_allocated() == before


def test_accumulated_figures_start_again_after_the_reset() -> None:
    take(MIB)
    stats = backend.memory_stats()
    assert stats["allocation.all.allocated"] == stats["allocation.all.freed"] == 1
    assert stats["allocated_bytes.all.allocated"] >= MIB
    backend.reset_accumulated_memory_stats()
    assert backend.memory_stats()["allocation.all.allocated"] == 0


def test_torch_accelerator_gives_the_same_figures() -> None:
    tensor = take(MIB)
    assert torch.accelerator.memory_allocated() == backend.memory_allocated() >= tensor.nbytes
    assert torch.accelerator.memory_reserved() == backend.memory_reserved()
    assert torch.accelerator.max_memory_allocated() == backend.max_memory_allocated()
    assert dict(torch.accelerator.memory_stats()) == backend.memory_stats()


def test_device_reports_free_and_total_memory() -> None:
    free, total = backend.mem_get_info()
    assert 0 < free <= total == backend.get_device_properties(0).total_memory
    tensor = take(32 * MIB)
    assert backend.mem_get_info()[0] <= free - tensor.nbytes
    assert torch.accelerator.get_memory_info() == backend.mem_get_info()


@needs_two_devices
def test_figures_belong_to_one_device() -> None:
    before = backend.memory_allocated(0), backend.memory_allocated(1)
    tensor = take(4 * MIB, f"{DEVICE}:1")
    assert backend.memory_allocated(0) == before[0]
    assert backend.memory_allocated(f"{DEVICE}:1") == before[1] + tensor.nbytes
    with backend.device(1):
        assert backend.memory_allocated() == before[1] + tensor.nbytes


def test_summary_shows_the_figures() -> None:
    tensor = take(3 * MIB)
    summary = backend.memory_summary()
    assert "MiB" in summary
    assert "current" in summary and "freed" in summary
    assert "freed" not in backend.memory_summary(0, abbreviated=True)
    assert tensor.nbytes == 3 * MIB


@needs(torch.float32)
def test_empty_tensors_take_no_memory() -> None:
    before = backend.memory_stats()["allocation.all.current"]
    tensor = torch.empty(0, 5, device=DEVICE)
    assert backend.memory_stats()["allocation.all.current"] == before
    assert (tensor + 1).sum().item() == 0


@needs(torch.float32)
def test_running_out_of_memory_raises_with_figures() -> None:
    _, total = backend.mem_get_info()
    ooms = backend.memory_stats()["num_ooms"]
    with pytest.raises(torch.OutOfMemoryError) as error:
        take(2 * total)
    message = str(error.value)
    assert message.startswith(f"{DEVICE} out of memory. Tried to allocate {2 * total // MIB}")
    assert f"{DEVICE}:0" in message
    for figure in (2 * total, total):
        assert f"{figure // MIB}" in message
    assert backend.memory_stats()["num_ooms"] == ooms + 1
    assert torch.ones(2, device=DEVICE).sum().item() == 2


def test_cache_is_emptied_before_memory_runs_out() -> None:
    free, _ = backend.mem_get_info()
    retries = backend.memory_stats()["num_alloc_retries"]
    first = take(int(free * 0.5))
    del first
    second = take(int(free * 0.75))
    assert backend.memory_stats()["num_alloc_retries"] == retries + 1
    del second
    backend.empty_cache()


@needs(torch.float32)
def test_operators_leak_nothing() -> None:
    def step() -> None:
        value = torch.ones(64, 64, device=DEVICE, requires_grad=True)
        (value @ value).relu().sum().backward()
        torch.special.bessel_j0(value.detach())
        value.detach().cpu()

    step()
    gc.collect()
    before = backend.memory_allocated()
    for _ in range(20):
        step()
    gc.collect()
    backend.synchronize()
    assert backend.memory_allocated() == before


@needs(torch.float32)
def test_repeated_sizes_do_not_grow_the_cache() -> None:
    for _ in range(3):
        torch.ones(1000, device=DEVICE) + 1
    reserved = backend.memory_reserved()
    for _ in range(200):
        torch.ones(1000, device=DEVICE) + 1
    assert backend.memory_reserved() == reserved


# --- Limits and snapshots ---


@pytest.fixture
def share() -> Iterator[float]:
    """Let this process take a tenth of device 0."""
    backend.set_per_process_memory_fraction(0.1, 0)
    yield 0.1
    backend.set_per_process_memory_fraction(1.0, 0)


def test_a_process_takes_no_more_than_its_share(share: float) -> None:
    total = backend.mem_get_info()[1]
    assert backend.get_per_process_memory_fraction() == share
    with pytest.raises(torch.OutOfMemoryError, match="set_per_process_memory_fraction allows"):
        take(int(total * 0.11))
    first = take(int(total * 0.06))
    with pytest.raises(torch.OutOfMemoryError):
        take(int(total * 0.06))
    del first
    # What is kept for reuse is given back first.
    assert take(int(total * 0.08)).nbytes > 0
    backend.set_per_process_memory_fraction(1.0)
    assert take(int(total * 0.11)).nbytes > 0


@needs_two_devices
def test_the_share_is_of_one_device(share: float) -> None:
    assert backend.get_per_process_memory_fraction(1) == 1
    assert take(int(backend.mem_get_info(1)[1] * 0.11), f"{DEVICE}:1").nbytes > 0


def test_a_share_of_nothing_leaves_what_there_is() -> None:
    tensor = take(MIB)
    backend.set_per_process_memory_fraction(0.0)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            take(MIB)
        assert backend.memory_allocated() >= tensor.nbytes
    finally:
        backend.set_per_process_memory_fraction(1.0)


@pytest.mark.parametrize(
    ("fraction", "error"), [(-0.1, ValueError), (1.5, ValueError), (1, TypeError), ("1", TypeError)]
)
def test_a_share_that_is_none_is_refused(fraction: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="fraction must be"):
        backend.set_per_process_memory_fraction(fraction)
    assert backend.get_per_process_memory_fraction() == 1


def segment_of(tensor: torch.Tensor) -> dict[str, Any]:
    """Return the one segment in which the tensor lies."""
    place = tensor.data_ptr()
    (found,) = [
        segment
        for segment in backend.memory_snapshot()
        if segment["device"] == tensor.device.index
        and segment["address"] <= place < segment["address"] + segment["total_size"]
    ]
    return dict(found)


def test_snapshot_shows_the_memory_of_a_tensor_and_what_becomes_of_it() -> None:
    tensor = take(3 * MIB)
    segment = segment_of(tensor)
    (block,) = segment["blocks"]
    assert block["state"] == "active_allocated"
    assert segment["requested_size"] == block["requested_size"] == tensor.nbytes
    assert segment["allocated_size"] == segment["total_size"] >= tensor.nbytes
    assert (segment["segment_type"], segment["stream"]) == ("large", 0)
    address = segment["address"]
    del tensor
    (freed,) = [item for item in backend.memory_snapshot() if item["address"] == address]
    assert freed["blocks"][0]["state"] == "inactive"
    assert freed["allocated_size"] == freed["active_size"] == 0
    backend.empty_cache()
    assert address not in [item["address"] for item in backend.memory_snapshot()]


def test_snapshot_adds_up_to_the_figures() -> None:
    kept = [take(size) for size in (100 * 8, MIB, 5 * MIB)]
    take(2 * MIB)
    for device in range(backend.device_count()):
        segments = [item for item in backend.memory_snapshot() if item["device"] == device]
        allocated = sum(item["allocated_size"] for item in segments)
        assert allocated == backend.memory_allocated(device)
        assert sum(item["total_size"] for item in segments) == backend.memory_reserved(device)
    assert len(kept) == 3


@needs(torch.float32)
def test_snapshot_names_the_stream() -> None:
    stream = backend.Stream()
    with backend.stream(stream):
        tensor = take(MIB)
    assert segment_of(tensor)["stream"] == stream.stream_id
    assert backend.memory_snapshot((0, 0)) == backend.memory_snapshot()
    assert backend.memory_snapshot((0, 7)) == []


def test_pytorchs_tools_read_the_snapshot() -> None:
    from torch.cuda import _memory_viz

    tensor = take(4 * MIB)
    data = {"segments": backend.memory_snapshot(), "device_traces": []}
    assert f"segments: {len(data['segments'])}" in _memory_viz.segsum(data)
    assert tensor.nbytes == 4 * MIB


def test_nested_figures_are_the_flat_ones() -> None:
    tensor = take(MIB)
    nested = backend.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == backend.memory_allocated()
    assert nested["num_ooms"] == backend.memory_stats()["num_ooms"]
    assert backend.device_memory_used() >= tensor.nbytes


@pytest.mark.native(like=pick_by_index)
@needs(torch.float32, torch.int64)
def test_memory_that_failed_work_used_comes_back_and_whoever_takes_it_hears_nothing() -> None:
    run_python(
        f"""
        import torch
        backend = torch.{DEVICE}
        streams = [backend.Stream() for _ in range(3)]
        torch.ones(1, device="{DEVICE}")
        backend.synchronize()

        def fail(stream):
            with backend.stream(stream):
                values, index = torch.ones(5, device="{DEVICE}"), torch.tensor([7], device="{DEVICE}")
                values[index]

        def told():
            count = 0
            for stream in streams:
                try:
                    stream.synchronize()
                except RuntimeError as error:
                    assert "index 7" in str(error), error
                    count += 1
            return count

        before = backend.memory_stats()
        for empty_cache in (False, True):
            for _ in range(5):
                blocks = [torch.empty(2**18, device="{DEVICE}") for _ in range(4)]
                for block in blocks:
                    for stream in streams:
                        block.record_stream(stream)
                for stream in streams:
                    fail(stream)
                del block, blocks
                while not all(stream.query() for stream in streams):
                    pass
                if empty_cache:
                    backend.empty_cache()
                for _ in range(10):
                    torch.empty(2**18, device="{DEVICE}")
                assert told() == 3
        torch.empty(1, device="{DEVICE}")
        after = backend.memory_stats()
        for figure in ("allocation", "active", "allocated_bytes", "active_bytes"):
            assert after[f"{{figure}}.all.current"] == before[f"{{figure}}.all.current"], figure
        """
    )


@needs(torch.float32)
def test_emptying_the_cache_leaves_what_is_in_use() -> None:
    stream = backend.Stream()
    for _ in range(5):
        data = torch.full((512, 512), 3.0, device=DEVICE)
        stream.wait_stream(backend.current_stream())
        with backend.stream(stream):
            for _ in range(4):
                data @ data
            result = data * 2
        data.record_stream(stream)
        del data
        backend.empty_cache()
        torch.full((512, 512), -1.0, device=DEVICE)
        stream.synchronize()
        assert result.cpu().eq(6).all()
