"""Memory that both the host and the device use, and the kind of memory of a tensor."""

from __future__ import annotations

import re

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import has_function, needs, run_python

pytestmark = needs(torch.float32)

unified = pytest.mark.skipif(
    not has_function("unified_memory", "allocate_unified"), reason="the device has no such memory"
)


def make(*shape: int) -> torch.Tensor:
    with backend.use_mem_pool(backend.MemPool(unified=True)):
        return torch.arange(float(torch.Size(shape).numel()), device=DEVICE).view(shape)


def test_kinds_of_other_memory() -> None:
    assert backend.memory_kind(torch.ones(3)) == "pageable"
    assert backend.memory_kind(torch.ones(3).pin_memory()) == "pinned"
    assert backend.memory_kind(torch.ones(3, device=DEVICE)) == "device"
    assert backend.memory_kind(torch.ones(30, device=DEVICE)[7::3]) == "device"
    with pytest.raises(ValueError, match="got one of meta"):
        backend.memory_kind(torch.ones(3, device="meta"))


@unified
def test_a_pool_of_unified_memory() -> None:
    x = make(50, 60)
    assert backend.memory_kind(x) == backend.memory_kind(x[3:, 4]) == "unified"
    assert backend.memory_kind(x + 1) == "device"
    assert (x + 1).cpu().equal(torch.arange(3000.0).view(50, 60) + 1)
    assert x.cpu().equal(torch.arange(3000.0).view(50, 60))
    x.copy_(torch.ones(50, 60))
    assert x.sum().item() == 3000


@unified
def test_unified_memory_is_freed() -> None:
    backend.synchronize()
    backend.empty_cache()
    before = backend.memory_reserved()
    x = make(1 << 20)
    assert backend.memory_reserved() > before
    del x
    backend.empty_cache()
    assert backend.memory_reserved() == before


@unified
def test_a_fallback_on_unified_memory_copies_nothing() -> None:
    x, out = make(30, 40), make(30, 40)
    with backend.count_fallbacks() as fallbacks:
        torch.special.bessel_j0(x, out=out)
    assert [record.bytes for record in fallbacks.values()] == [0]
    expected = torch.special.bessel_j0(torch.arange(1200.0).view(30, 40))
    torch.testing.assert_close(out.cpu(), expected)


@unified
def test_hints() -> None:
    code = f"""
import torch
backend = torch.{DEVICE}
with backend.use_mem_pool(backend.MemPool(unified=True)):
    x = torch.arange(3000.0, device="{DEVICE}").view(50, 60)
backend.prefetch(x, "cpu")
backend.prefetch(x)
backend.prefetch(x[:, 3], torch.device("{DEVICE}", 0))
for advice in ("read_mostly", "prefer_host", "prefer_device", "none"):
    backend.advise(x.T, advice)
backend.prefetch(x[:0])
backend.synchronize()
assert x.cpu().equal(torch.arange(3000.0).view(50, 60))
"""
    printed = run_python(code, {f"{ENV_PREFIX}_TRACE": "device"}).stderr
    assert re.findall(r"(prefetch|advise)\(.*, (\d+), (\S+)\)$", printed, re.MULTILINE) == [
        ("prefetch", "12000", "-1"),
        ("prefetch", "12000", "0"),
        ("prefetch", "11764", "0"),
        ("advise", "12000", "kReadMostly"),
        ("advise", "12000", "kPreferHost"),
        ("advise", "12000", "kPreferDevice"),
        ("advise", "12000", "kNone"),
    ], printed


@unified
def test_hints_about_other_memory_are_refused() -> None:
    x = torch.ones(3, device=DEVICE)
    with pytest.raises(RuntimeError, match="not in unified memory"):
        backend.prefetch(x)
    with pytest.raises(RuntimeError, match="not in unified memory"):
        backend.advise(x, "none")
    with pytest.raises(ValueError, match="'soon' is no advice: choose from none, read_mostly"):
        backend.advise(make(3), "soon")
    with pytest.raises(ValueError, match="'soon' is no advice"):
        backend.advise(make(0), "soon")
    with pytest.raises(ValueError, match="got one of cpu"):
        backend.prefetch(torch.ones(3))


@pytest.mark.skipif(
    has_function("unified_memory", "allocate_unified"), reason="the device has such memory"
)
def test_a_device_without_unified_memory_raises_an_error() -> None:
    with pytest.raises(NotImplementedError, match="has no allocate_unified"):
        backend.MemPool(unified=True)
