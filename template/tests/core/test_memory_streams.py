"""Memory that several streams use, and that forked children inherit."""

from __future__ import annotations

import os

import pytest
import torch
from backend import DEVICE, backend
from core.failures import Failure, succeed
from support import MIB, keep_busy, needs, run_python, take

pytestmark = pytest.mark.usefixtures("full_segments")


def state_at(address: int) -> str:
    """Return the state of the block that begins at an address."""
    (state,) = {
        block["state"]
        for segment in backend.memory_snapshot()
        for block in segment["blocks"]
        if block["address"] == address
    }
    return str(state)


def figures(*names: str) -> list[int]:
    stats = backend.memory_stats()
    return [stats[f"{name}.all.current"] for name in names]


@needs(torch.float32)
@pytest.mark.parametrize("kind", ["empty", "larger"])
def test_memory_is_freed_after_the_work_that_uses_it(kind: str) -> None:
    run_python(
        f"""
        import torch
        from support import keep_busy
        backend = torch.{DEVICE}
        backend.set_per_process_memory_fraction(70 * 2**20 / backend.mem_get_info()[1])
        used = torch.empty(36 * 2**20, dtype=torch.uint8, device="{DEVICE}")
        backend.synchronize()
        keep_busy(seconds=0.5)
        used.fill_(1)
        event = backend.current_stream().record_event()
        del used
        if {kind == "empty"}:
            backend.empty_cache()
        else:
            larger = torch.empty(40 * 2**20, dtype=torch.uint8, device="{DEVICE}")
        assert event.query()
        """
    )


@needs(torch.float32)
def test_memory_is_reused_after_a_recorded_stream_has_finished() -> None:
    stream = backend.Stream()
    waited = 0
    for _ in range(10):
        tensor = take(3 * MIB)
        address = tensor.data_ptr()
        keep_busy(stream)
        tensor.record_stream(stream)
        active = figures("active_bytes", "requested_bytes")
        allocated = backend.memory_allocated()
        del tensor
        assert backend.memory_allocated() == allocated - 3 * MIB
        other = take(3 * MIB)
        state = state_at(address)
        if not stream.query():
            waited += 1
            assert state == "active_pending_free"
            assert other.data_ptr() != address
            # Both include blocks that wait to become free, as on CUDA.
            assert figures("active_bytes", "requested_bytes") == [
                before + 3 * MIB for before in active
            ]
        stream.synchronize()
        del other
        take(8)  # checks which events are complete
        assert state_at(address) == "inactive"
    assert waited > 0, "the stream was never busy"


@needs(torch.float32)
def test_memory_is_reused_after_all_recorded_streams_have_finished() -> None:
    streams = [backend.Stream() for _ in range(3)]
    tensor = take(3 * MIB)
    address = tensor.data_ptr()
    for count, stream in enumerate(streams):
        keep_busy(stream, 0.05 * 2**count)
        tensor.record_stream(stream)
        tensor.record_stream(stream)
    tensor.record_stream(backend.current_stream())
    del tensor
    waited = 0
    for stream in streams:
        other = take(8)
        if not stream.query():
            waited += 1
            assert state_at(address) == "active_pending_free"
        stream.synchronize()
        del other
    assert waited > 1, "only one stream was busy"
    take(8)
    assert state_at(address) == "inactive"


@needs(torch.float32)
def test_a_busy_stream_delays_only_its_own_memory() -> None:
    busy, idle = backend.Stream(), backend.Stream()
    first, second = take(3 * MIB), take(3 * MIB)
    place = second.data_ptr()
    keep_busy(busy, 0.2)
    first.record_stream(busy)
    second.record_stream(idle)
    del first, second
    idle.synchronize()
    take(8)
    assert state_at(place) == "inactive"
    assert not busy.query(), "the stream was not busy"
    busy.synchronize()


def test_streams_do_not_share_free_memory() -> None:
    stream = backend.Stream()
    tensor = take(3 * MIB)
    address = tensor.data_ptr()
    del tensor
    with backend.stream(stream):
        assert take(3 * MIB).data_ptr() != address
    assert take(3 * MIB).data_ptr() == address


@needs(torch.float32)
def test_empty_cache_keeps_used_memory() -> None:
    stream = backend.Stream()
    for _ in range(5):
        data = torch.full((512, 512), 3.0, device=DEVICE)
        stream.wait_stream(backend.current_stream())
        with backend.stream(stream):
            keep_busy(stream, 0.02)
            result = data * 2
        data.record_stream(stream)
        del data
        backend.empty_cache()
        torch.full((512, 512), -1.0, device=DEVICE)
        stream.synchronize()
        assert result.cpu().eq(6).all()


@pytest.mark.native(like=succeed)
@needs(torch.float32, torch.int64)
def test_memory_of_failed_work_is_reused_without_an_error(
    failure: Failure,
) -> None:
    run_python(
        f"""
        import torch
        {failure.code}
        backend = torch.{DEVICE}
        streams = [backend.Stream() for _ in range(3)]
        torch.ones(1, device="{DEVICE}")
        backend.synchronize()

        def told():
            count = 0
            for stream in streams:
                try:
                    stream.synchronize()
                except RuntimeError as error:
                    assert {failure.message!r} in str(error), error
                    backend.acknowledge_failure(stream)
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
        """,
        failure.environment,
    )


# --- Forked children ---


@needs(torch.float32)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_does_not_free_memory_of_its_parent() -> None:
    run_python(
        f"""
        import os, torch, warnings
        warnings.simplefilter("ignore")
        backend = torch.{DEVICE}
        stream = backend.Stream()
        tensors = [torch.empty(1000, device="{DEVICE}") for _ in range(3)]
        pool = backend.MemPool()
        with backend.use_mem_pool(pool):
            tensors.append(torch.empty(1000, device="{DEVICE}"))
        for tensor in tensors:
            tensor.record_stream(stream)
        del tensors[0]
        child = os.fork()
        if child == 0:
            tensors.clear()
            del tensor, pool
            backend.empty_cache()
            assert backend.memory_snapshot() == []
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
