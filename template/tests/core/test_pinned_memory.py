"""Page-locked host memory, and the DataLoader that fills it."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from support import needs
from torch.utils.data import DataLoader, TensorDataset

pytestmark = needs(torch.float32, torch.int64)


def test_pinned_tensor_says_so_and_keeps_its_values() -> None:
    tensor = torch.arange(10)
    pinned = tensor.pin_memory()
    assert not tensor.is_pinned()
    assert pinned.is_pinned()
    assert pinned.device.type == "cpu"
    assert pinned.equal(tensor)


def test_pinning_a_pinned_tensor_returns_it() -> None:
    pinned = torch.arange(10).pin_memory()
    assert pinned.pin_memory() is pinned


def test_factories_make_pinned_tensors() -> None:
    assert torch.empty(4, pin_memory=True).is_pinned()
    assert torch.zeros(4, pin_memory=True).equal(torch.zeros(4))


def test_views_of_pinned_memory_are_pinned() -> None:
    pinned = torch.empty(100, pin_memory=True)
    assert pinned[10:20].is_pinned()


def test_tensor_of_the_device_is_not_pinned_and_cannot_be() -> None:
    tensor = torch.ones(2, device=DEVICE)
    assert not tensor.is_pinned()
    with pytest.raises(RuntimeError, match="pin"):
        tensor.pin_memory()


def test_asynchronous_copies_keep_their_source_until_they_ran() -> None:
    results = []
    for number in range(20):
        pinned = torch.full((10_000,), number, dtype=torch.float32).pin_memory()
        results.append(pinned.to(DEVICE, non_blocking=True))
        del pinned
    for number, result in enumerate(results):
        assert result.cpu().eq(number).all()


def test_asynchronous_copy_to_pinned_memory_is_there_after_synchronising() -> None:
    source = torch.arange(10_000.0, device=DEVICE)
    target = torch.empty(10_000, pin_memory=True)
    target.copy_(source * 2, non_blocking=True)
    backend.synchronize()
    assert target.equal(torch.arange(10_000.0) * 2)


def test_asynchronous_to_cpu_uses_pinned_memory() -> None:
    result = torch.arange(100.0, device=DEVICE).to("cpu", non_blocking=True)
    backend.synchronize()
    assert result.equal(torch.arange(100.0))


def test_pinned_memory_is_reused() -> None:
    first = torch.empty(12_345, pin_memory=True)
    address = first.data_ptr()
    del first
    assert torch.empty(12_345, pin_memory=True).data_ptr() == address
    backend.empty_host_cache()
    # PyTorch has its own name for it from 2.12 on.
    getattr(torch.accelerator, "empty_host_cache", backend.empty_host_cache)()


def test_data_loader_does_not_pin_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "is_available", lambda: False)
    loader = DataLoader(TensorDataset(torch.arange(4)), batch_size=2, pin_memory=True)
    with pytest.warns(UserWarning, match="pin_memory"):
        batches = [batch for (batch,) in loader]
    assert not any(batch.is_pinned() for batch in batches)


@pytest.mark.parametrize("workers", [0, 1])
def test_data_loader_pins_its_batches(workers: int) -> None:
    inputs, labels = torch.arange(24.0).reshape(8, 3), torch.arange(8)
    loader = DataLoader(
        TensorDataset(inputs, labels), batch_size=4, pin_memory=True, num_workers=workers
    )
    total = torch.zeros(3, device=DEVICE)
    for batch, label in loader:
        assert batch.is_pinned()
        assert label.is_pinned()
        total += batch.to(DEVICE, non_blocking=True).sum(0)
    assert total.cpu().equal(inputs.sum(0))
