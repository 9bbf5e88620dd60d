"""torch._foreach_copy_: lists of tensors are copied in one call of the device if possible."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import has_function, keep_busy, needs, run_python

pytestmark = needs(torch.float32)

PLACES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "device": lambda x: x.to(DEVICE),
    "host": lambda x: x.clone(),
    "pinned": lambda x: x.clone().pin_memory(),
}
SHAPES = [(3, 5), (), (0, 4), (40, 50, 60), (7,)]


def lists(
    to: str, source: str
) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    values = [torch.randn(shape) for shape in SHAPES]
    target = [PLACES[to](torch.full(shape, -1.0)) for shape in SHAPES]
    return target, [PLACES[source](value) for value in values], values


@pytest.mark.parametrize("to", PLACES)
@pytest.mark.parametrize("source", PLACES)
@pytest.mark.parametrize("non_blocking", [False, True])
def test_copies_between_all_devices(to: str, source: str, non_blocking: bool) -> None:
    target, sources, values = lists(to, source)
    torch._foreach_copy_(target, sources, non_blocking)
    backend.synchronize()
    for got, expected in zip(target, values, strict=True):
        assert got.cpu().equal(expected)


def test_strided_and_broadcast_tensors_are_copied_as_by_copy() -> None:
    values = [torch.randn(6, 8, dtype=torch.complex64).conj(), torch.randn(8), torch.randn(4, 4)]
    target = [
        torch.zeros(6, 8, dtype=torch.complex64, device=DEVICE),
        torch.zeros(3, 8, device=DEVICE),
        torch.zeros(4, 4, dtype=torch.float16, device=DEVICE),
    ]
    torch._foreach_copy_(target, values)
    assert target[0].cpu().equal(values[0])
    assert target[1].cpu().equal(values[1].expand(3, 8))
    assert target[2].cpu().equal(values[2].half())


def test_copies_that_depend_on_each_other_keep_their_order() -> None:
    for there in (torch.device("cpu"), torch.device(DEVICE)):
        x = torch.arange(12.0, device=there)
        torch._foreach_copy_([x[4:8], x[8:12], x[0:4]], [x[0:4], x[4:8], x[8:12]])
        assert x.cpu().equal(torch.arange(4.0).repeat(3))
    y = torch.zeros(4, device=DEVICE)
    torch._foreach_copy_(
        [y, y], [torch.ones(4).pin_memory(), torch.full((4,), 2.0).pin_memory()], True
    )
    assert y.cpu().equal(torch.full((4,), 2.0))


def test_a_lazy_copy_gets_its_own_memory() -> None:
    kept = torch.zeros(5, device=DEVICE)
    lazy = torch._lazy_clone(kept)
    torch._foreach_copy_([lazy, torch.zeros(2, device=DEVICE)], [torch.ones(5), torch.ones(2)])
    torch._foreach_copy_(
        [torch._lazy_clone(kept), torch.zeros(5, device=DEVICE)],
        [lazy, torch.ones(5, device=DEVICE)],
    )
    assert kept.cpu().equal(torch.zeros(5))
    assert lazy.cpu().equal(torch.ones(5))


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_the_version_increases_and_backward_raises(device: str) -> None:
    target = [torch.zeros(3, device=device), torch.zeros(2, device=device)]
    source = torch.ones(3, device=device, requires_grad=True)
    torch._foreach_copy_(target, [source, torch.ones(2)])
    assert [tensor._version for tensor in target] == [1, 1]
    with pytest.raises(RuntimeError, match="derivative for _foreach_copy_ is not implemented"):
        target[0].sum().backward()


def test_wrong_lists_are_refused_as_on_the_cpu() -> None:
    for there in ("cpu", DEVICE):
        x = torch.zeros(3, device=there)
        with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
            torch._foreach_copy_([x, x], [x])
        with pytest.raises(RuntimeError, match=r"greater or equal|broadcast shape"):
            torch._foreach_copy_([x, x], [torch.zeros(2, 3), torch.zeros(3)])


def test_pinned_sources_are_copied_asynchronously_and_not_reused_early() -> None:
    sources = [torch.full((50, 60), float(i)).pin_memory() for i in range(4)]
    target = [torch.zeros(50, 60, device=DEVICE) for _ in sources]
    keep_busy(seconds=0.5)
    is_busy = not backend.current_stream().query()
    torch._foreach_copy_(target, sources, True)
    assert not (is_busy and backend.current_stream().query())
    del sources
    again = [torch.full((50, 60), -1.0).pin_memory() for _ in range(4)]
    for i, tensor in enumerate(target):
        assert tensor.cpu().equal(torch.full((50, 60), float(i)))
    assert all(tensor.min() == -1 for tensor in again)


@pytest.mark.skipif(not has_function("copies", "copy_batch"), reason="the device copies no batches")
def test_a_list_is_one_call_of_the_device() -> None:
    code = f"""
import torch
there = [torch.zeros(100 + i, device="{DEVICE}") for i in range(20)]
host = [torch.zeros(100 + i, pin_memory=True) for i in range(20)]
torch.{DEVICE}.synchronize()
print("begin", flush=True)
torch._foreach_copy_(there, host, True)
torch._foreach_copy_(host, there)
torch._foreach_copy_(there, [x.clone() for x in there])
torch.{DEVICE}.synchronize()
"""
    said = run_python(code, {f"{ENV_PREFIX}_TRACE": "copies"}).stderr
    copies = [line for line in said.splitlines() if re.search(r"\[\w+ copy\]", line)]
    assert sum("copy_batch(" in line for line in copies) == 3, said
    assert sum("copy_bytes(" in line for line in copies) == 0, said
