"""DeepSpeed's own operators on this device.

DeepSpeed's builders compile an operator at its first use. Here fused Adam is PyTorch's operator.
Host operators, which offloading uses, are DeepSpeed's own. All others raise NotImplementedError.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch

from .._build import NAME

__all__ = ["BUILDERS", "FusedAdam", "builder"]

BUILDERS = "deepspeed.ops.op_builder.cpu"
"""The module with the builders for the host."""
ON_HOST = (
    "AsyncIOBuilder",
    "CPUAdagradBuilder",
    "CPUAdamBuilder",
    "CPULionBuilder",
    "PinMemoryBuilder",
)


def builder(class_name: str) -> Any:
    """Return the builder class of this name. Its ``load()`` returns the operator, or raises."""
    if class_name == "FusedAdamBuilder":
        return _fused_adam_builder()
    on_host = getattr(importlib.import_module(BUILDERS), class_name, None)
    return on_host if on_host and class_name in ON_HOST else _missing_builder(class_name)


@functools.cache
def _fused_adam_builder() -> Any:
    base: Any = importlib.import_module(f"{BUILDERS}.fused_adam").FusedAdamBuilder

    class FusedAdamBuilder(base):
        """Loads PyTorch's operator without compilation."""

        def load(self, verbose: bool = True) -> Any:
            return FusedAdam

    return FusedAdamBuilder


@functools.cache
def _missing_builder(class_name: str) -> Any:
    base: Any = importlib.import_module(f"{BUILDERS}.no_impl").NotImplementedBuilder

    class NotImplementedBuilder(base):
        """Raises for an operator that this device does not have."""

        def is_compatible(self, verbose: bool = False) -> bool:
            return False

        def load(self, verbose: bool = True) -> Any:
            operator = class_name.removesuffix("Builder")
            raise NotImplementedError(
                f"DeepSpeed's operator {operator} is not written for {NAME}: remove the option "
                "that uses it"
            )

    return NotImplementedBuilder


class FusedAdam:
    """DeepSpeed's fused Adam with PyTorch's, which also computes in float32 and rounds once."""

    @staticmethod
    @torch.no_grad()
    def multi_tensor_adam(
        chunk_size: int,
        noop_flag_buffer: torch.Tensor,
        tensor_lists: list[list[torch.Tensor]],
        lr: float,
        beta1: float,
        beta2: float,
        epsilon: float,
        step: int,
        adam_w_mode: int,
        bias_correction: int,
        weight_decay: float,
        *rest: object,
    ) -> None:
        """Update parameters and their averages in place."""
        gradients, parameters, averages, squares = tensor_lists
        # With infinitely many steps there is no bias correction.
        steps = torch.full(
            (), float(step if bias_correction else "inf"), device=parameters[0].device
        )
        update = torch._fused_adamw_ if adam_w_mode else torch._fused_adam_
        update(
            parameters,
            gradients,
            averages,
            squares,
            [],
            [steps] * len(parameters),
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            weight_decay=weight_decay,
            eps=epsilon,
            amsgrad=False,
            maximize=False,
        )
