"""Page-locked host memory, and the DataLoader that fills it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, backend
from core.failures import Failure, succeed
from support import keep_busy, needs, run_python
from torch.utils.data import DataLoader, TensorDataset

pytestmark = needs(torch.float32, torch.int64)


def test_pinning_a_pinned_tensor_returns_it() -> None:
    pinned = torch.arange(10).pin_memory()
    assert pinned.pin_memory() is pinned


@pytest.mark.parametrize(
    "alias",
    [
        lambda pinned: pinned[1000:],
        lambda pinned: torch.from_numpy(pinned.numpy()[1000:]),
        lambda pinned: torch.from_numpy(pinned.numpy()),
        lambda pinned: torch.frombuffer(pinned.numpy().data, dtype=torch.float32, offset=4000),
    ],
    ids=["view", "part of an array", "array", "buffer"],
)
def test_pinned_memory_of_an_alias_is_kept_until_its_copy_has_run(
    alias: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    for _ in range(5):
        pinned = torch.full((50_000,), 3.0).pin_memory()
        part = alias(pinned)
        assert part.is_pinned()
        target = torch.zeros(part.shape, device=DEVICE)
        keep_busy()
        target.copy_(part, non_blocking=True)
        del pinned, part
        torch.full((50_000,), -1.0).pin_memory()
        assert target.cpu().eq(3).all()


def test_copy_into_an_alias_does_not_reach_the_next_owner() -> None:
    source = torch.full((49_000,), 3.0, device=DEVICE)
    for _ in range(5):
        pinned = torch.empty(50_000, pin_memory=True)
        part = torch.from_numpy(pinned.numpy()[1000:])
        keep_busy()
        part.copy_(source, non_blocking=True)
        del pinned, part
        next_owner = torch.full((50_000,), -1.0).pin_memory()
        backend.synchronize()
        assert next_owner.eq(-1).all()


@pytest.mark.native(like=succeed)
def test_reusing_pinned_memory_of_failed_work_raises_nothing(failure: Failure) -> None:
    result = run_python(
        f"""
        import torch
        {failure.code}
        stream = torch.{DEVICE}.Stream()
        for _ in range(5):
            pinned = torch.ones(1000).pin_memory()
            fail(stream)
            with torch.{DEVICE}.stream(stream):
                pinned.to("{DEVICE}", non_blocking=True)
            del pinned
            while not stream.query():
                pass
            assert torch.empty(1000, pin_memory=True).is_pinned()
            try:
                stream.synchronize()
            except RuntimeError as error:
                assert {failure.message!r} in str(error), error
                torch.{DEVICE}.acknowledge_failure(stream)
                print("told")
        """,
        failure.environment,
    )
    assert result.stdout.split() == ["told"] * 5


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
