"""The full tier, ``pytest -m conformance_full``: every operator, dtype and sample of PyTorch's own
table, one test for each operator, dtype and aspect."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE
from conformance import aspects, declared, evidence
from support import supported_dtypes
from torch.testing._internal.common_device_type import (
    OpDTypes,
    PrivateUse1TestBase,
    instantiate_device_type_tests,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

pytestmark = pytest.mark.conformance_full


def having(aspect: str) -> ops:
    """Make tests for the operators that have an aspect for some dtype."""
    chosen = [op for op in op_db if any(aspects.applies(aspect, op, dtype) for dtype in op.dtypes)]
    dtypes: Any = {
        "backward": OpDTypes.supported_backward,
        "strides_backward": OpDTypes.supported_backward,
        "autocast": (torch.float32,),
        "errors": OpDTypes.any_one,
    }.get(aspect, OpDTypes.supported)
    allowed = supported_dtypes()
    if aspect in aspects.OF_FEW_DTYPES:
        allowed = tuple(dtype for dtype in allowed if dtype in aspects.FEW_DTYPES)
    if aspect.startswith("strides"):
        allowed = tuple(dtype for dtype in allowed if dtype in aspects.OF_STRIDES)
    return ops(chosen, dtypes=dtypes, allowed_dtypes=allowed)


class TestConformance(TestCase):
    """Each compares all samples of one operator and dtype with the CPU."""

    def compare(self, aspect: str, op: Any, dtype: torch.dtype) -> None:
        name = op.full_name
        if reason := declared.crash(name, aspect):
            self.skipTest(reason)
        comparison = declared.comparison(name, aspect, dtype)
        outcome = aspects.compare_with_cpu(aspect, op, dtype, comparison)
        failure = declared.failure(name, aspect, dtype) or {}
        evidence.note(
            kind=outcome.kind,
            route=outcome.route,
            fallbacks=outcome.fallbacks,
            samples=outcome.compared,
            failed=len(outcome.problems),
            reason=failure.get("reason", outcome.skipped if outcome.kind == "skip" else ""),
            category=failure.get("category", ""),
            **({} if outcome.extra is None else {"extra": round(outcome.extra, 1)}),
        )
        if outcome.kind == "skip":
            self.skipTest(outcome.skipped)
        if outcome.problems:
            shown = "\n".join(outcome.problems[:5])
            self.fail(
                f"{name}, {dtype}, {aspect}: {len(outcome.problems)} of {outcome.compared} samples"
                f" differ from the CPU\n{shown}"
            )

    @having("forward")
    def test_forward(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("forward", op, dtype)

    @having("noncontiguous")
    def test_noncontiguous(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("noncontiguous", op, dtype)

    @having("out")
    def test_out(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("out", op, dtype)

    @having("in_place")
    def test_in_place(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("in_place", op, dtype)

    @having("backward")
    def test_backward(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("backward", op, dtype)

    @having("autocast")
    def test_autocast(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("autocast", op, dtype)

    @having("layout")
    def test_layout(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("layout", op, dtype)

    @having("views")
    def test_views(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("views", op, dtype)

    @having("strides")
    def test_strides(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("strides", op, dtype)

    @having("strides_backward")
    def test_strides_backward(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("strides_backward", op, dtype)

    @having("ranks")
    def test_ranks(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("ranks", op, dtype)

    @having("repeated")
    def test_repeated(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("repeated", op, dtype)

    @having("nonfinite")
    def test_nonfinite(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("nonfinite", op, dtype)

    @having("memory")
    def test_memory(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("memory", op, dtype)

    @having("expanded_input")
    def test_expanded_input(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("expanded_input", op, dtype)

    @having("expanded_output")
    def test_expanded_output(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("expanded_output", op, dtype)

    @having("other_output")
    def test_other_output(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("other_output", op, dtype)

    @having("errors")
    def test_errors(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.compare("errors", op, dtype)


PrivateUse1TestBase.set_test_configs(op_overrides=declared.op_overrides("TestConformance"))
instantiate_device_type_tests(TestConformance, globals(), only_for=DEVICE)
PrivateUse1TestBase.set_test_configs()
