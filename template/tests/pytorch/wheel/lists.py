"""The operators on lists of tensors, ``torch._foreach_*``, against the CPU, also in place."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import (
    foreach_binary_op_db,
    foreach_other_op_db,
    foreach_pointwise_op_db,
    foreach_reduce_op_db,
    foreach_unary_op_db,
)
from torch.testing._internal.common_utils import TestCase, run_tests
from torch.utils._pytree import tree_map, tree_map_only

EVERY = [
    *foreach_unary_op_db,
    *foreach_binary_op_db,
    *foreach_pointwise_op_db,
    *foreach_reduce_op_db,
    *foreach_other_op_db,
]
DTYPES = (torch.float32, torch.bfloat16, torch.complex64, torch.int64, torch.bool)


def on_cpu(values: Any) -> Any:
    """Return nested values with copies of their tensors on the CPU."""
    return tree_map_only(torch.Tensor, lambda tensor: tensor.detach().cpu().clone(), values)


def in_float32(values: Any) -> Any:
    """Return copies on the CPU, of which those of bfloat16 are converted to float32."""

    def widened(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.float() if tensor.dtype is torch.bfloat16 else tensor

    return tree_map_only(torch.Tensor, widened, on_cpu(values))


class TestLists(TestCase):
    """Each compares all samples of one operator and dtype."""

    def compare(self, function: Any, sample: Any, in_place: bool) -> None:
        mine = on_cpu((list(sample.input), sample.args, sample.kwargs))
        theirs = copy.deepcopy((list(sample.input), sample.args, sample.kwargs))
        try:
            expected = function(mine[0], *mine[1], **mine[2])
        except Exception as refused:
            if "not implemented for" in str(refused):
                return  # the CPU lacks a kernel: the device may have one
            with self.assertRaises(type(refused)):
                function(theirs[0], *theirs[1], **theirs[2])
            return
        expected = mine[0] if in_place else expected
        if sample.input[0].dtype is torch.bfloat16:  # some CPU kernels round each of their steps
            wide = in_float32((list(sample.input), sample.args, sample.kwargs))
            exact = function(wide[0], *wide[1], **wide[2])
            exact = wide[0] if in_place else exact
            expected = tree_map(lambda value, like: value.to(like.dtype), exact, expected)
        actual = function(theirs[0], *theirs[1], **theirs[2])
        actual = theirs[0] if in_place else actual
        tolerance = 0.02 if sample.input[0].dtype is torch.bfloat16 else 1e-5
        self.assertEqual(actual, expected, exact_device=False, rtol=tolerance, atol=tolerance)

    @ops([op for op in EVERY if op.supports_out], allowed_dtypes=DTYPES)
    def test_results(self, device: str, dtype: torch.dtype, op: Any) -> None:
        for sample in op.sample_inputs(device, dtype):
            self.compare(op.method_variant, sample, in_place=False)

    @ops([op for op in EVERY if op.inplace_variant is not None], allowed_dtypes=DTYPES)
    def test_in_place(self, device: str, dtype: torch.dtype, op: Any) -> None:
        for sample in op.sample_inputs(device, dtype):
            self.compare(op.inplace_variant, sample, in_place=True)


instantiate_device_type_tests(TestLists, globals())

if __name__ == "__main__":
    run_tests()
