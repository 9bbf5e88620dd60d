"""Every operator of PyTorch's table gives the same result compiled and eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils import _pytree

SAMPLES = 2
OPERATORS = [
    each
    for each in op_db
    if torch.float32 in each.dtypes
    and not any(word in each.name for word in ("empty", "sparse", "jiterator"))
]
"""Those of float32, except uninitialised memory, layouts that are not compiled, and CUDA's own."""


STATISTICS = ("native_batch_norm", "_native_batch_norm_legit")
"""PyTorch's decomposition of these returns running statistics where eager operators return none."""


def _have_elements(results: Any) -> bool:
    """Return whether all tensors have elements: only then strides are compared."""
    return all(x.numel() for x in _pytree.tree_leaves(results) if isinstance(x, torch.Tensor))


@pytest.mark.full
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: each.formatted_name)
def test_a_compiled_operator_equals_eager(operator: OpInfo) -> None:
    torch._dynamo.reset()
    compared = 0
    for sample in list(operator.sample_inputs("cpu", torch.float32))[:SAMPLES]:
        inputs, arguments, keywords = _pytree.tree_map_only(
            torch.Tensor,
            lambda each: each.detach().to(DEVICE),
            (sample.input, sample.args, sample.kwargs),
        )

        def call(
            operator: Any,
            inputs: Any = inputs,
            arguments: Any = arguments,
            keywords: Any = keywords,
        ) -> Any:
            torch.manual_seed(0)
            return operator(inputs, *arguments, **keywords)

        try:
            expected = call(operator)
        except (NotImplementedError, RuntimeError, TypeError):
            continue  # for one, it makes a tensor of a dtype that the backend was generated without
        actual = call(torch.compile(lambda *a, **k: operator.op(*a, **k)))
        if operator.name in STATISTICS:
            actual, expected = actual[0], expected[0]
        torch.testing.assert_close(
            actual, expected, equal_nan=True, check_stride=_have_elements(expected)
        )
        compared += 1
    if not compared:
        pytest.skip("no sample of it runs eagerly")


def test_binary_cross_entropy_with_logits_reduces_by_default() -> None:
    """The Python function for this operator has a different default reduction than the operator."""
    x = torch.rand(3, device=DEVICE)
    compiled = torch.compile(lambda x: torch.ops.aten.binary_cross_entropy_with_logits(x, x))
    assert compiled(x).shape == ()
