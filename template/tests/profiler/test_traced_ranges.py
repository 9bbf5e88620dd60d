"""``emit_ranges``: operators as ranges of the device's tool, in the output of layer `trace`."""

from __future__ import annotations

import re

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
from support import has_function, needs, run_python

pytestmark = needs(torch.float32)


@pytest.mark.skipif(
    not has_function("ranges", "push_range"), reason="the device library has no ranges"
)
def test_a_failure_in_the_block_ends_the_ranges() -> None:
    run_python(
        f"""
        import torch
        emit_ranges = torch.{DEVICE}.emit_ranges
        values = torch.ones(2, device="{DEVICE}")
        try:
            with emit_ranges():
                values[torch.tensor([5], device="{DEVICE}")]
        except RuntimeError:
            assert not torch._C._autograd._profiler_enabled()
        else:
            raise AssertionError("the failure is not raised")
        """
    )


@pytest.mark.skipif(
    not has_function("ranges", "push_range"), reason="the device library has no ranges"
)
def test_emit_ranges_pushes_a_range_around_each_operator() -> None:
    result = run_python(
        f"""
        import sys, torch
        from torch.profiler import record_function
        emit_ranges = torch.{DEVICE}.emit_ranges
        values = torch.ones(2, 3, device="{DEVICE}", requires_grad=True)

        def say(text):
            print("#", text, file=sys.stderr, flush=True)

        say("forward")
        with emit_ranges(record_shapes=True):
            with record_function("mine"):
                product = values * 2
        say("backward")
        with emit_ranges():
            product.sum().backward()
        say("off")
        with emit_ranges(enabled=False):
            values.detach() + 1
        try:
            with emit_ranges():
                raise KeyError
        except KeyError:
            values.detach() + 1
        say("twice")
        with torch.autograd.profiler.profile(), emit_ranges():
            pass
        """,
        {f"{ENV_PREFIX}_TRACE": "device"},
        check=False,
    )
    _, forward, backward, off, twice = re.split(r"^# \w+\n", result.stderr, flags=re.MULTILINE)
    range_or_launch = r"(?:push|pop)_range\(.*\)|binary\((?=.*aten::mul)"
    sizes = "sizes = [[2, 3], []]"
    assert re.findall(range_or_launch, forward) == [
        "push_range('mine')",
        f"push_range('aten::mul, seq = 0, {sizes}')",
        "binary(",
        "pop_range()",
        "pop_range()",
    ]
    assert "push_range('MulBackward0, seq = 0')" in backward
    assert backward.count("push_range") == backward.count("pop_range")
    assert "binary(" in off
    assert "_range" not in off
    assert "Profiler is already enabled" in twice
