"""Copies of rows between the host and the device, without packing."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import has_function, keep_busy, needs, run_python

pytestmark = needs(torch.float32)

# Views of a tensor of 40 x 30 x 80 elements.
VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "columns": lambda x: x.view(40, -1)[:, 100:2000],
    "every other row": lambda x: x.view(-1, 80)[::2],
    "middle": lambda x: x[:, 5:20],
    "a few planes": lambda x: x[3:15:3, 2:25, 10:70],
    "many planes": lambda x: x[:, 2:25, 10:70],
    "permuted rows": lambda x: x.transpose(0, 1)[:, :, :50],
    "short rows": lambda x: x[:, :, :3],
    "expanded": lambda x: x[:, :1].expand(40, 30, 80),
    "transposed": lambda x: x.view(40, -1).T,
    "one row": lambda x: x[2, 3, 10:70],
    "gap at the end": lambda x: x[:39],
}


def sample(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(40 * 30 * 80).view(40, 30, 80).to(dtype)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("non_blocking", [False, True])
def test_rows_are_copied_in_both_directions(view: str, pinned: bool, non_blocking: bool) -> None:
    host = sample().pin_memory() if pinned else sample()
    there = torch.zeros(40, 30, 80, device=DEVICE)
    part = VIEWS[view]
    expected = part(host).clone()
    # From rows into a whole tensor, from a whole tensor into rows, and from rows to rows.
    assert part(host).to(DEVICE, non_blocking=non_blocking).cpu().equal(expected)
    if view != "expanded":
        part(there).copy_(expected, non_blocking=non_blocking)
        assert part(there).cpu().equal(expected)
        around = torch.zeros(40, 30, 80)
        part(around).copy_(expected)
        assert there.cpu().equal(around)
        there.zero_()
        part(there).copy_(part(host), non_blocking=non_blocking)
        assert there.cpu().equal(around)
        back = torch.zeros(40, 30, 80, pin_memory=pinned)
        part(back).copy_(part(there), non_blocking=non_blocking)
        backend.synchronize()
        assert back.equal(around)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.complex64])
def test_rows_of_any_dtype(dtype: torch.dtype) -> None:
    values = (sample() % 7).to(dtype)
    there = values.to(DEVICE)
    assert there[:, 3:20, :].cpu().equal(values[:, 3:20, :])
    assert there[:, :, :70].cpu().equal(values[:, :, :70])
    there[:, 3:20].copy_(values[:, :17])
    assert there[:, 3:20].cpu().equal(values[:, :17])


def test_rows_are_converted_and_conjugated() -> None:
    values = torch.view_as_complex(torch.randn(30, 40, 2))
    there = values.to(DEVICE)
    assert there[:, 2:30].conj().cpu().equal(values[:, 2:30].conj())
    target = torch.zeros(30, 28, dtype=torch.complex64)
    target.copy_(there[:, 2:30].conj())
    assert target.equal(values[:, 2:30].conj())
    real = sample()
    assert real[:, 5:20].to(DEVICE, torch.float64).cpu().equal(real[:, 5:20].double())


def test_a_pinned_source_is_copied_asynchronously_and_not_reused_early() -> None:
    source = sample().pin_memory()
    target = torch.zeros(40, 15, 80, device=DEVICE)
    keep_busy(seconds=0.5)
    is_busy = has_function("copies", "copy_2d") and not backend.current_stream().query()
    target.copy_(source[:, 5:20], non_blocking=True)
    assert not (is_busy and backend.current_stream().query())
    expected = source[:, 5:20].clone()
    del source
    again = torch.full((40, 30, 80), -1.0).pin_memory()
    assert target.cpu().equal(expected)
    assert again.min() == -1


@pytest.mark.skipif(not has_function("copies", "copy_2d"), reason="the device copies no rows")
def test_rows_are_copied_by_one_call_without_a_kernel() -> None:
    code = f"""
import torch
x = torch.arange(4000.0 * 50).view(4000, 50)
y = torch.zeros(4000, 90, device="{DEVICE}")
torch.{DEVICE}.synchronize()
print("begin", flush=True)
y[:, 10:60].copy_(x)
a = y[:, 10:60].cpu()
torch.{DEVICE}.synchronize()
assert a.equal(x)
"""
    said = run_python(code, {f"{ENV_PREFIX}_TRACE": "copies,launches"}).stderr
    copies = [line for line in said.splitlines() if re.search(r"\[\w+ (copy|launch)\]", line)]
    assert sum("copy_2d(" in line for line in copies) == 2, said
    # The only kernel is that of y.
    assert sum(" copy(" in line for line in copies) == 0, said
