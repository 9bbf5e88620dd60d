"""The fast tier: a few samples of every operator in PyTorch's table, in two dtypes and all aspects;
results in all dtypes; and whether the operator falls back. The full tier tests all samples:
``pytest -m conformance_full``."""

from __future__ import annotations

import zlib
from typing import Any

import torch
from backend import DEVICE
from conformance import aspects, declared, routes
from conformance.run import Outcome
from support import may_fall_back, supported_dtypes
from torch.testing._internal.common_device_type import (
    OpDTypes,
    instantiate_device_type_tests,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

SEVERAL = 6
"""The number of samples for results and gradients; other aspects use one."""

OF_ONE_DTYPE = ("strides", "strides_backward", "memory", "nonfinite")
"""Aspects that call a sample many times."""


FEW = 1
"""The number of samples for results in the other dtypes."""

SLOW = (
    ("grid_sampler_3d", "backward"),
    ("nn.functional.multi_head_attention_forward", "strides_backward"),
    ("svd_lowrank", "strides_backward"),
)
"""Operators and aspects that take many seconds: only the full tier tests them."""


def others(op: Any, dtype: torch.dtype) -> list[torch.dtype]:
    """Return the dtypes besides ``dtype``. Which one is first depends on the operator's name."""
    found = sorted(
        (other for other in supported_dtypes() if other in op.dtypes and other != dtype), key=str
    )
    first = zlib.crc32(op.full_name.encode()) % max(len(found), 1)
    return found[first:] + found[:first]


class TestSample(TestCase):
    """Each compares one operator with the CPU."""

    @ops(
        [op for op in op_db if op.dtypes],
        dtypes=OpDTypes.any_one,
        allowed_dtypes=supported_dtypes(),
    )
    def test_sample(self, device: str, dtype: torch.dtype, op: Any) -> None:
        name = op.full_name
        compared = 0
        for place, one in enumerate((dtype, *others(op, dtype))):
            for aspect in aspects.ASPECTS if place < 2 else ("forward",):
                if not aspects.applies(aspect, op, one) or declared.failure(name, aspect, one):
                    continue
                if declared.crash(name, aspect) or (name, aspect) in SLOW:
                    continue
                if one != dtype and aspect in OF_ONE_DTYPE:
                    continue
                comparison = declared.comparison(name, aspect, one)
                limit = SEVERAL if aspect in ("forward", "backward") else 1
                limit = limit if place < 2 else FEW
                outcome = aspects.compare_with_cpu(aspect, op, one, comparison, limit=limit)
                self.assertFalse(outcome.problems, f"{name}, {one}, {aspect}")
                compared += outcome.compared
                if aspect in ("forward", "backward") and one is aspects.first_dtype(op):
                    self.check_route(name, aspect, outcome)
        if compared == 0:
            self.skipTest(
                "its failures are declared, the CPU has no result, or a dtype was left out"
            )

    def check_route(self, name: str, aspect: str, outcome: Outcome) -> None:
        """Check that an operator, or its gradient, falls back if and only if that is declared."""
        expected = declared.on_cpu(name, aspect)
        if expected is not None and outcome.compared and not may_fall_back():
            ran = outcome.fallbacks if expected else outcome.avoidable
            on_cpu = [fallback for fallback in ran if not routes.draws(fallback)]
            self.assertEqual(bool(on_cpu), expected, f"{name}, {aspect}, on the CPU: {on_cpu}")


instantiate_device_type_tests(TestSample, globals(), only_for=DEVICE)
