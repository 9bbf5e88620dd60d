"""The optimizers of PyTorch's table: steps of every implementation, against the CPU."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_optimizers import optim_db, optims
from torch.testing._internal.common_utils import TestCase, parametrize, run_tests

STEPS = 3


def trained(optimizer: Any, options: dict[str, Any], device: str, dtype: torch.dtype) -> Any:
    """Return parameters after a few steps from the same numbers with the same gradients."""
    generator = torch.Generator().manual_seed(0)
    parameters = [
        torch.rand(shape, generator=generator, dtype=dtype).to(device).requires_grad_()
        for shape in ((3, 4), (4, 2), (5, 5))
    ]
    chosen = optimizer(parameters, **copy.deepcopy(options))
    gradients = [
        [torch.rand(item.shape, generator=generator, dtype=dtype) - 0.5 for item in parameters]
        for _ in range(STEPS)
    ]

    def closure() -> torch.Tensor:
        return torch.zeros((), dtype=dtype, device=device)

    for step in gradients:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = gradient.to(device)
        chosen.step(closure)
    return [parameter.detach().cpu() for parameter in parameters]


class TestOptimizers(TestCase):
    """Each test uses all arguments that the table has for an optimizer."""

    @parametrize("implementation", ["default", "foreach", "fused"])
    @optims(
        [info for info in optim_db if not info.only_supports_sparse_grads], dtypes=[torch.float32]
    )
    def test_like_the_cpu(
        self, device: str, dtype: torch.dtype, optim_info: Any, implementation: str
    ) -> None:
        kind = torch.device(device).type
        if implementation != "default" and implementation not in optim_info.supported_impls:
            self.skipTest(f"there is no {implementation} implementation")
        chosen = {} if implementation == "default" else {implementation: True}
        for optim_input in optim_info.optim_inputs_func(device=kind, dtype=dtype):
            options = {key: value for key, value in optim_input.kwargs.items() if key not in chosen}
            if optim_input.params is not None or options.get("capturable"):
                continue  # own parameters, or a form that the CPU lacks
            expected = trained(optim_info.optim_cls, options, "cpu", dtype)
            actual = trained(optim_info.optim_cls, options | chosen, device, dtype)
            self.assertEqual(actual, expected)


instantiate_device_type_tests(TestOptimizers, globals())

if __name__ == "__main__":
    run_tests()
