"""Segments that grow in place: expandable_segments of PYTORCH_ALLOC_CONF."""

from __future__ import annotations

import pytest
import torch
from core.allocator import run_with_settings
from support import has_function, needs

SEGMENTS = """
def segments():
    return [part for part in backend.memory_snapshot() if part["is_expandable"]]
"""


def run_expandable(code: str) -> None:
    run_with_settings("expandable_segments:True", SEGMENTS + code)


PROGRAMS = {
    "one segment grows with its tensors": """
tensors = [take(30 * MIB) for _ in range(4)]
first = tensors[0].data_ptr()
assert [tensor.data_ptr() - first for tensor in tensors] == [30 * MIB * i for i in range(4)]
(segment,) = segments()
assert segment["address"] == first and segment["total_size"] == 120 * MIB
assert figure("segment.large_pool.current") == 1
assert figure("reserved_bytes.large_pool.current") == 120 * MIB
for i, tensor in enumerate(tensors):
    tensor.fill_(i)
assert [tensor.sum().item() for tensor in tensors] == [i * tensors[0].numel() for i in range(4)]
""",
    "free memory at the end is grown not left": """
for size in range(20, 400, 20):
    tensor = take(size * MIB)
    del tensor
assert figure("reserved_bytes.large_pool.current") == 380 * MIB
assert figure("reserved_bytes.large_pool.peak") == 380 * MIB
""",
    "what is free at the end goes back alone": """
kept, freed = take(21 * MIB), take(60 * MIB)
free, _ = backend.mem_get_info()
del freed
backend.empty_cache()
assert figure("reserved_bytes.large_pool.current") == 22 * MIB
assert backend.mem_get_info()[0] == free + 60 * MIB
kept.fill_(3)
assert kept.sum().item() == 3 * kept.numel()
again = take(60 * MIB)
assert again.data_ptr() == kept.data_ptr() + 21 * MIB
del kept, again
backend.empty_cache()
assert figure("reserved_bytes.all.current") == 0 and not segments()
assert figure("segment.all.current") == 0 and figure("inactive_split.all.current") == 0
""",
    "running out leaves all as it was": """
free, total = backend.mem_get_info()
kept = take(64 * MIB)
try:
    take(free)
except torch.OutOfMemoryError:
    pass
else:
    raise AssertionError("more memory than there is")
assert figure("num_ooms") == 1
assert figure("reserved_bytes.large_pool.current") == 64 * MIB
assert take(free // 2).nbytes >= free // 2
assert kept.fill_(1).sum().item() == kept.numel()
""",
    "streams have segments of their own and threads agree": """
import random
from threading import Thread

def work(seed):
    numbers = random.Random(seed)
    with backend.stream(backend.Stream()):
        held = []
        for step in range(60):
            tensor = take(numbers.randint(1, 24) * MIB + 4)
            tensor.fill_(step)
            held.append((tensor, step))
            if len(held) > 6:
                tensor, value = held.pop(numbers.randrange(len(held)))
                assert tensor[0].item() == tensor[-1].item() == value
            if step % 20 == 19:
                backend.empty_cache()

threads = [Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
backend.synchronize()
backend.empty_cache()
assert figure("reserved_bytes.all.current") == 0, backend.memory_stats()
assert figure("active.all.current") == 0
""",
    "a refused growth leaves no segment": """
backend.set_per_process_memory_fraction(10 * MIB / backend.mem_get_info()[1])
try:
    take(30 * MIB)
except torch.OutOfMemoryError:
    assert not segments() and figure("segment.all.current") == 0
else:
    raise AssertionError("it is within the limit")
""",
    "the history and the settings name it": """
backend.memory._record_memory_history()
tensor = take(30 * MIB)
del tensor
backend.empty_cache()
snapshot = backend.memory._snapshot()
actions = [event["action"] for event in snapshot["device_traces"][0]]
assert actions.count("segment_map") == actions.count("segment_unmap") == 1, actions
assert "segment_free" not in actions
assert snapshot["allocator_settings"]["expandable_segments"] is True
""",
}


@pytest.mark.skipif(
    not has_function("virtual_memory", "map_memory"), reason="the device cannot map memory"
)
@needs(torch.float32)
@pytest.mark.parametrize("name", PROGRAMS)
def test_segments_grow(name: str) -> None:
    run_expandable(PROGRAMS[name])


@pytest.mark.skipif(has_function("virtual_memory", "map_memory"), reason="the device maps memory")
@needs(torch.float32)
def test_a_device_that_cannot_map_memory_warns_once() -> None:
    run_expandable("""
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    tensors = [take(30 * MIB), take(30 * MIB)]
(warning,) = [str(item.message) for item in caught]
assert "expandable_segments" in warning and "PYTORCH_ALLOC_CONF" in warning
""")
