"""First and second gradients against finite differences, for common operators of models."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from backend import DEVICE
from conformance.samples import Arguments, samples
from support import names, needs
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

CHOSEN = set(
    names(
        """
    addmm bmm cat cumsum div.no_rounding_mode exp gather index_select log_softmax matmul mul
    nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.batch_norm
    nn.functional.binary_cross_entropy nn.functional.conv2d nn.functional.conv_transpose2d
    nn.functional.gelu nn.functional.group_norm nn.functional.huber_loss
    nn.functional.interpolate.bicubic nn.functional.interpolate.bilinear
    nn.functional.interpolate.nearest nn.functional.layer_norm nn.functional.max_pool2d
    nn.functional.max_pool3d nn.functional.mse_loss nn.functional.pad.reflect
    nn.functional.pad.replicate nn.functional.rms_norm
    nn.functional.scaled_dot_product_attention nn.functional.smooth_l1_loss
    nn.functional.unfold softmax std sum tanh where
    """
    )
)
SAMPLES = 2

pytestmark = needs(torch.float64)


class TestGradcheck(TestCase):
    """In double precision, by random projections."""

    @ops([op for op in op_db if op.full_name in CHOSEN], dtypes=(torch.float64,))
    def test_gradcheck(self, device: str, dtype: torch.dtype, op: Any) -> None:
        for sample in itertools.islice(samples(op, dtype, gradients=True), SAMPLES):
            arguments = Arguments.of(sample).on_device()
            inputs = tuple({id(t): t for t in arguments.tensors() if t.requires_grad}.values())
            torch.manual_seed(0)

            def call(
                *changed: torch.Tensor,
                arguments: Arguments = arguments,
                inputs: tuple[torch.Tensor, ...] = inputs,
            ) -> Any:
                new = dict(zip(map(id, inputs), changed, strict=True))
                return arguments.map(lambda value: new.get(id(value), value)).call(op)

            self.assertTrue(torch.autograd.gradcheck(call, inputs, fast_mode=True))
            if op.supports_gradgrad:
                # PyTorch has second derivatives of attention only for the math backend.
                with sdpa_kernel(SDPBackend.MATH):
                    self.assertTrue(torch.autograd.gradgradcheck(call, inputs, fast_mode=True))


def test_the_chosen_operators_exist() -> None:
    missing = CHOSEN - {op.full_name for op in op_db}
    if missing:
        pytest.fail(f"PyTorch's table has no {', '.join(sorted(missing))}")


instantiate_device_type_tests(TestGradcheck, globals(), only_for=DEVICE)
