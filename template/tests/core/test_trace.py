"""The output of <PREFIX>_TRACE."""

from __future__ import annotations

import functools
import re

import torch
from backend import DEVICE, ENV_PREFIX
from support import needs, run_python

pytestmark = needs(torch.float32)

CODE = f"""
import torch
one = torch.ones(1000, device="{DEVICE}:0")
two = one + one
three = torch.special.bessel_j0(two)
back = two.cpu()
last = torch.{DEVICE}.device_count() - 1
other = two.to(f"{DEVICE}:{{last}}")
try:
    torch.ones(1, device="{DEVICE}:99")
except RuntimeError:
    pass
with torch.{DEVICE}.stream(torch.{DEVICE}.Stream()):
    two * 2
"""


@functools.cache
def trace(categories: str) -> list[str]:
    environment = {f"{ENV_PREFIX}_TRACE": categories, f"{ENV_PREFIX}_FALLBACK": "silent"}
    return run_python(CODE, environment).stderr.splitlines()


def test_nothing_is_printed_when_it_is_off() -> None:
    assert trace("") == []


def test_ops_prints_overload_route_device_and_stream() -> None:
    lines = trace("ops")
    add = next(line for line in lines if "aten::add.Tensor" in line)
    assert "native" in add
    assert f"{DEVICE}:0" in add
    assert "default stream" in add
    assert any("special_bessel_j0" in line and "fallback" in line for line in lines)
    multiply = next(line for line in lines if "aten::mul." in line)
    assert re.search(r"stream 0x|stream \d", multiply)
    assert not any("allocate" in line or "Exception" in line for line in lines)


def test_memory_and_copies_print_bytes() -> None:
    lines = trace("memory,copies")
    assert any(f"{DEVICE}:0 -> cpu" in line and "4000 bytes" in line for line in lines)
    assert any(re.search(rf"allocate \d+ bytes .*{DEVICE}:0", line) for line in lines)
    assert any(re.search(rf"free \d+ bytes .*{DEVICE}:0", line) for line in lines)
    assert not any("aten::" in line for line in lines)


def test_launches_print_family_operator_and_answer() -> None:
    lines = trace("launches,copies")
    add = next(line for line in lines if "binary(kAdd, float32 (1000), " in line)
    assert "aten::add.Tensor" in add
    assert f"{DEVICE}:0  default stream" in add
    assert "  done" in add or "  unsupported: " in add
    assert any("binary(kMul, " in line and "stream 0x" in line for line in lines)
    assert not any(line.startswith((f"[{DEVICE} op]", f"[{DEVICE} memory]")) for line in lines)


def test_device_prints_the_streams_that_are_made() -> None:
    assert any(re.search(r"create_stream\(\d+, .*-> stream 0x", line) for line in trace("device"))
