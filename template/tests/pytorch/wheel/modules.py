"""The modules of PyTorch's table: results, gradients and state, against the CPU."""

from __future__ import annotations

import copy
import io
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_utils import TestCase, freeze_rng_state, run_tests
from torch.utils._pytree import tree_leaves, tree_map_only


def moved(values: Any, device: str) -> Any:
    """Return nested values with their tensors on a device, as leaves of new graphs."""
    return tree_map_only(
        torch.Tensor,
        lambda tensor: tensor.detach().to(device, copy=True).requires_grad_(tensor.requires_grad),
        values,
    )


def tensors(values: Any) -> list[torch.Tensor]:
    """Return the tensors among nested values."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


class TestModules(TestCase):
    """Each test uses all inputs that the table has for a module."""

    def inputs(self, info: Any, dtype: torch.dtype, training: bool, gradients: bool) -> Any:
        return info.module_inputs_func(
            info, device="cpu", dtype=dtype, requires_grad=gradients, training=training
        )

    def made(self, info: Any, module_input: Any, dtype: torch.dtype, training: bool) -> Any:
        given = module_input.constructor_input
        module = info.module_cls(*given.args, **given.kwargs)
        return module.to(dtype).train(training)

    @modules(module_db)
    def test_like_the_cpu(
        self, device: str, dtype: torch.dtype, module_info: Any, training: bool
    ) -> None:
        for module_input in self.inputs(module_info, dtype, training, gradients=True):
            if module_input.forward_input is None:
                continue
            mine = self.made(module_info, module_input, dtype, training)
            given = (module_input.forward_input.args, module_input.forward_input.kwargs)
            arguments = moved(given, "cpu")
            if any(isinstance(part, torch.nn.UninitializedParameter) for part in mine.parameters()):
                mine(*copy.deepcopy(arguments[0]), **copy.deepcopy(arguments[1]))
            theirs = copy.deepcopy(mine).to(device)
            on_device = moved(given, device)
            with freeze_rng_state():
                expected = mine(*arguments[0], **arguments[1])
            actual = theirs(*on_device[0], **on_device[1])
            if draws(mine):
                continue
            options = {"exact_device": False, "rtol": tolerance(dtype), "atol": tolerance(dtype)}
            self.assertEqual(actual, expected, **options)
            differentiable = [item for item in tensors(expected) if item.requires_grad]
            if not differentiable:
                continue
            sum(item.abs().sum() for item in differentiable).backward()
            sum(item.abs().sum() for item in tensors(actual) if item.requires_grad).backward()
            pairs = zip(theirs.parameters(), mine.parameters(), strict=True)
            leaves = zip(tensors(on_device), tensors(arguments), strict=True)
            for here, there in (*pairs, *leaves):
                self.assertEqual(here.grad, there.grad, **options)

    @modules(module_db)
    def test_state_survives_a_file(
        self, device: str, dtype: torch.dtype, module_info: Any, training: bool
    ) -> None:
        for module_input in self.inputs(module_info, dtype, training, gradients=False):
            module = self.made(module_info, module_input, dtype, training).to(device)
            file = io.BytesIO()
            torch.save(module.state_dict(), file)
            file.seek(0)
            state = torch.load(
                file, weights_only=False
            )  # lazy modules have uninitialised parameters
            for name, value in module.state_dict().items():
                lazy = isinstance(
                    value, UninitializedTensorMixin
                )  # a file does not contain their device
                if isinstance(value, torch.Tensor) and not lazy:
                    self.assertEqual(state[name].device.type, torch.device(device).type)
                    self.assertEqual(state[name], value)


def tolerance(dtype: torch.dtype) -> float:
    """Return the tolerance for rounding differences of several operators."""
    return 0.05 if dtype.itemsize == 2 else 1e-4


def draws(module: torch.nn.Module) -> bool:
    """Whether a module's results are random, and so differ between devices."""
    random = (torch.nn.modules.dropout._DropoutNd, torch.nn.RReLU)
    return module.training and any(
        isinstance(part, random) and getattr(part, "p", 1) for part in module.modules()
    )


instantiate_device_type_tests(TestModules, globals())

if __name__ == "__main__":
    run_tests()
