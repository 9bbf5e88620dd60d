"""Copy-on-write tensors (torch._lazy_clone): reading leaves them lazy, and writing copies them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import keep_busy, needs, needs_two_devices, sample
from torch.nn import functional as F

pytestmark = needs(torch.float32, torch.int64)

# Its type stubs lack these functions.
TORCH: Any = torch._C
is_lazy = TORCH._is_cow_tensor
FIRST = torch.tensor([1, 0])
READERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "to the CPU": lambda x: x.cpu(),
    "item": lambda x: x[0, 0].item(),
    "clone": lambda x: x.clone(),
    "a copy with gaps": lambda x: torch.zeros(3, 8, device=x.device)[:, ::2].copy_(x),
    "unary": lambda x: x.abs(),
    "binary": lambda x: x + x[0],
    "conversion": lambda x: x.to(torch.int64),
    "where": lambda x: torch.where(x > 0, x, 1.0),
    "reduction": lambda x: x.sum(1),
    "argmax": lambda x: x.argmax(1),
    "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: x.softmax(1),
    "sort": lambda x: x.sort(1).values,
    "topk": lambda x: x.topk(2).values,
    "matmul": lambda x: x @ x.T,
    "gather": lambda x: x[FIRST.to(x.device)],
    "masked select": lambda x: x.masked_select(x > 0),
    "triu": lambda x: x.triu(),
    "cat": lambda x: torch.cat([x, x]),
    "layer norm": lambda x: F.layer_norm(x, (4,), x[0], x[1]),
    "convolution": lambda x: F.conv1d(x[None], x[None, :, :1]),
    "pooling": lambda x: F.max_pool1d(x[None], 2),
    "attention": lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "the CPU in its stead": lambda x: torch.special.bessel_j0(x),
}  # fmt: skip
WRITERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "fill": lambda x: x.fill_(1),
    "zero": lambda x: x.zero_(),
    "a view": lambda x: x[1:, ::2].fill_(7),
    "unary": lambda x: x.abs_(),
    "binary": lambda x: x.add_(1),
    "out": lambda x: torch.neg(sample(3, 4).to(x.device), out=x),
    "a reduction's out": lambda x: torch.sum(sample(5, 3, 4).to(x.device), 0, out=x),
    "softmax's out": lambda x: torch.softmax(sample(3, 4).to(x.device), 1, out=x),
    "copy": lambda x: x.copy_(sample(3, 4)),
    "a copy with gaps": lambda x: x[:, ::2].copy_(sample(3, 2).to(x.device)),
    "index put": lambda x: x.index_put_((FIRST.to(x.device),), x[:2].clone()),
    "masked fill": lambda x: x.masked_fill_(x > 0, 9.0),
    "scatter": lambda x: x.scatter_(1, FIRST.to(x.device)[:, None], 5.0),
    "triu": lambda x: x.triu_(),
    "a list": lambda x: torch._foreach_mul_([x], 2.0),
    "the CPU in its stead": lambda x: torch.special.bessel_j0(sample(3, 4).to(x.device), out=x),
}


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_copying_from_a_lazy_copy_leaves_it_lazy(device: str) -> None:
    values = sample(3, 4)
    lazy = values.to(device)._lazy_clone()
    for target in ("cpu", DEVICE, f"{DEVICE}:{backend.device_count() - 1}"):
        assert torch.zeros(3, 4, device=target).copy_(lazy).cpu().equal(values)
    assert is_lazy(lazy)


@pytest.mark.parametrize("name", READERS)
def test_reading_leaves_a_copy_lazy(name: str) -> None:
    values = sample(3, 4)
    lazy = values.to(DEVICE)._lazy_clone()
    result = READERS[name](lazy)
    assert is_lazy(lazy)
    expected = READERS[name](values)
    if isinstance(result, torch.Tensor):
        torch.testing.assert_close(result.cpu(), expected)
    else:
        assert result == pytest.approx(expected)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("which", ["original", "copy"])
def test_writing_changes_only_one_of_two_copies(name: str, which: str) -> None:
    values = sample(3, 4)
    original = values.to(DEVICE)
    copy = original._lazy_clone()
    written, other = (original, copy) if which == "original" else (copy, original)
    expected = values.clone()
    WRITERS[name](expected)
    WRITERS[name](written)
    assert not is_lazy(written)
    torch.testing.assert_close(written.cpu(), expected)
    assert other.cpu().equal(values)


def test_a_lazy_copy_stays_lazy_if_memory_runs_out() -> None:
    backend.empty_cache()
    free, _ = backend.mem_get_info()
    original = torch.full((int(free * 0.2) // 4,), 3.0, device=DEVICE)
    copy = original._lazy_clone()
    # In parts, as a device may have a limit for one allocation.
    filler = [torch.empty(int(free * 0.14) // 4, device=DEVICE) for _ in range(5)]
    for _ in range(2):
        with pytest.raises(torch.OutOfMemoryError):
            copy.fill_(1)
        assert is_lazy(copy)
    del filler
    copy.fill_(1)
    assert original[-10:].cpu().eq(3).all()
    assert copy[-10:].cpu().eq(1).all()
    del original, copy
    backend.empty_cache()


def test_an_optimizer_does_not_change_copies_of_its_parameters() -> None:
    parameters = [sample(4).to(device)._lazy_clone().requires_grad_() for device in ("cpu", DEVICE)]
    before = [parameter.detach()._lazy_clone() for parameter in parameters]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
        torch.optim.SGD([parameter], 0.5, fused=True).step()
    torch.testing.assert_close(parameters[1].detach().cpu(), parameters[0].detach())
    assert before[1].cpu().equal(sample(4))


def test_memory_that_another_stream_copies_is_not_reused() -> None:
    stream = backend.Stream()
    for _ in range(20):
        original = torch.full((512, 512), 3.0, device=DEVICE)
        copy = original._lazy_clone()
        stream.wait_stream(backend.current_stream())
        with backend.stream(stream):
            keep_busy(stream, 0.02)
            original += 1
        del copy
        overwriting = torch.full((512, 512), -1.0, device=DEVICE)
        stream.synchronize()
        assert original.cpu().eq(4).all()
        assert overwriting.cpu().eq(-1).all()


@needs_two_devices
def test_operators_write_on_the_device_of_their_tensors() -> None:
    original = sample(3, 4).to(f"{DEVICE}:1")
    copy = original._lazy_clone()
    third = copy._lazy_clone()
    assert third.data_ptr() not in (0, TORCH._data_address(original))
    copy += 1
    assert third.cpu().equal(sample(3, 4))
    assert copy.device == original.device == torch.device(DEVICE, 1)
    assert copy.cpu().equal(sample(3, 4) + 1)
    assert original.cpu().equal(sample(3, 4))


def test_record_stream_applies_to_the_memory_of_a_lazy_copy() -> None:
    stream = backend.Stream()
    for _ in range(20):
        copy = torch.full((512, 512), 3.0, device=DEVICE)._lazy_clone()
        stream.wait_stream(backend.current_stream())
        with backend.stream(stream):
            keep_busy(stream, 0.02)
            result = copy * 2
        copy.record_stream(stream)
        del copy
        overwriting = torch.full((512, 512), -1.0, device=DEVICE)
        stream.synchronize()
        assert result.cpu().eq(6).all()
        assert overwriting.cpu().eq(-1).all()
