"""The caching allocator: statistics, reuse, and running out of memory."""

from __future__ import annotations

import gc

import pytest
import torch
from backend import DEVICE, backend
from support import assert_same

MIB = 1 << 20


def take(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device=DEVICE)


@pytest.fixture(autouse=True)
def settled() -> None:
    gc.collect()
    backend.synchronize()
    backend.empty_cache()


def test_allocated_memory_counts_live_tensors() -> None:
    before = backend.memory_allocated()
    tensor = take(8 * MIB)
    assert backend.memory_allocated() >= before + 8 * MIB
    assert backend.memory_reserved() >= backend.memory_allocated()
    assert torch.accelerator.memory_allocated() == backend.memory_allocated()
    del tensor
    assert backend.memory_allocated() == before


def test_memory_is_reused_and_freed_by_empty_cache() -> None:
    before = backend.memory_reserved()
    for _ in range(5):
        take(8 * MIB)
    reserved = backend.memory_reserved()
    assert before < reserved < before + 5 * 8 * MIB
    backend.empty_cache()
    assert backend.memory_reserved() == before


def test_the_peak_is_kept_until_it_is_reset() -> None:
    backend.reset_peak_memory_stats()
    before = backend.max_memory_allocated()
    take(16 * MIB)
    assert backend.max_memory_allocated() >= before + 16 * MIB
    backend.reset_peak_memory_stats()
    assert backend.max_memory_allocated() == backend.memory_allocated()


def test_statistics_and_their_summary() -> None:
    tensor = take(MIB)
    stats = backend.memory_stats()
    assert stats["allocated_bytes.all.current"] == backend.memory_allocated() > 0
    assert stats["reserved_bytes.all.current"] == backend.memory_reserved()
    assert "llocated" in backend.memory_summary()
    free, total = backend.mem_get_info()
    assert 0 < free <= total - tensor.nbytes


def in_words(size: int) -> str:
    """Return a size in the form of PyTorch's messages."""
    return f"{size / 2**30:.2f} GiB" if size > 2**30 else f"{size / MIB:.2f} MiB"


def test_running_out_of_memory_is_an_error_that_leaves_the_rest_usable() -> None:
    kept = torch.ones(4, device=DEVICE)
    total = backend.mem_get_info()[1]
    count = backend.memory_stats()["num_ooms"]
    tried = rf"^{DEVICE} out of memory\. Tried to allocate {in_words(2 * total)}"
    with pytest.raises(torch.OutOfMemoryError, match=tried) as error:
        take(2 * total)
    assert f"{DEVICE}:0" in str(error.value) and in_words(total) in str(error.value)
    assert backend.memory_stats()["num_ooms"] == count + 1
    taken = []
    with pytest.raises(torch.OutOfMemoryError):
        while True:
            taken.append(take(total // 4))
    assert len(taken) <= 4
    taken.clear()
    assert_same(kept + 1, torch.full((4,), 2.0))
    take(total // 4)


def test_a_tensor_that_cannot_grow_keeps_its_values() -> None:
    tensor = torch.ones(4, device=DEVICE)
    with pytest.raises(torch.OutOfMemoryError):
        tensor.resize_(backend.mem_get_info()[1])
    assert_same(tensor, torch.ones(4))
    assert_same(tensor.resize_(6)[:4], torch.ones(4))


def test_storages_can_be_resized() -> None:
    tensor = torch.ones(4, device=DEVICE)
    tensor.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError):
        (tensor + 1).cpu()
    tensor.untyped_storage().resize_(16)
    assert_same(tensor.fill_(3), torch.full((4,), 3.0))


def test_training_leaks_nothing() -> None:
    def step() -> None:
        leaf = torch.ones(64, 64, device=DEVICE, requires_grad=True)
        (leaf @ leaf).relu().sum().backward()
        torch.special.bessel_j0(leaf.detach())
        leaf.detach().cpu()

    step()
    gc.collect()
    before = backend.memory_allocated()
    for _ in range(20):
        step()
    gc.collect()
    backend.synchronize()
    assert backend.memory_allocated() == before
