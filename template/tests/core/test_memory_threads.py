"""The allocator in many threads at once, also for the thread sanitizer."""

from __future__ import annotations

import random
import threading
from itertools import pairwise

import pytest
import torch
from backend import backend
from support import MIB, take

pytestmark = pytest.mark.usefixtures("full_segments")

THREADS, ROUNDS = 8, 40_000


def test_threads_allocate_and_free_concurrently() -> None:
    """Each thread allocates on its own stream and frees tensors of all threads. Other streams use
    some of them meanwhile.
    """
    # The caches of eight streams then fit into a small device.
    large = min(MIB, backend.mem_get_info()[1] // 2048)
    before = backend.memory_stats()
    streams = [backend.Stream() for _ in range(THREADS)]
    kept: list[torch.Tensor | None] = [None] * 64
    failures: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def work(number: int) -> None:
        try:
            draws = random.Random(number)
            sizes = draws.choices((8, 512, 4000, 100_000, large, 3 * large), k=61)
            start.wait()
            with backend.stream(streams[number]):
                for step in range(ROUNDS):
                    tensor = take(sizes[step % len(sizes)])
                    if step % 16 == 0:
                        tensor.record_stream(streams[(number + 1) % THREADS])
                    kept[(step + 8 * number) % len(kept)] = tensor
                    if step % 10_000 == 0:
                        backend.empty_cache()
                        backend.memory_snapshot()
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    tensors = [tensor for tensor in kept if tensor is not None]
    places = sorted((tensor.data_ptr(), tensor.nbytes) for tensor in tensors)
    assert all(place + size <= after for (place, size), (after, _) in pairwise(places))
    kept.clear()
    tensors.clear()
    backend.synchronize()
    backend.empty_cache()
    after = backend.memory_stats()
    for name in ("allocation", "allocated_bytes", "active", "active_bytes", "requested_bytes"):
        assert after[f"{name}.all.current"] == before[f"{name}.all.current"], name
    taken = after["allocation.all.allocated"] - before["allocation.all.allocated"]
    assert taken == THREADS * ROUNDS
