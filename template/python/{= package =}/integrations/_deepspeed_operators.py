"""The operators that DeepSpeed has beside PyTorch's: which of them there are for this device.

Its builders compile them, each when it is used first. Fused Adam is here PyTorch's. Those for the
host, of offloading, are DeepSpeed's own. All others say that they are missing.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch

from .._build import NAME

__all__ = ["BUILDERS", "FusedAdam", "builder"]

BUILDERS = "deepspeed.ops.op_builder.cpu"
"""The module that has the builders for the host."""
ON_HOST = (
    "AsyncIOBuilder",
    "CPUAdagradBuilder",
    "CPUAdamBuilder",
    "CPULionBuilder",
    "PinMemoryBuilder",
)


def builder(class_name: str) -> Any:
    """Return the class of this name whose ``load()`` gives the operator, or raises for a missing one."""
    if class_name == "FusedAdamBuilder":
        return _fused_adam_builder()
    on_host = getattr(importlib.import_module(BUILDERS), class_name, None)
    return on_host if on_host and class_name in ON_HOST else _missing_builder(class_name)


@functools.cache
def _fused_adam_builder() -> Any:
    base: Any = importlib.import_module(f"{BUILDERS}.fused_adam").FusedAdamBuilder

    class FusedAdamBuilder(base):
        """Loads the device's own operator: nothing is compiled."""

        def load(self, verbose: bool = True) -> Any:
            return FusedAdam

    return FusedAdamBuilder


@functools.cache
def _missing_builder(class_name: str) -> Any:
    base: Any = importlib.import_module(f"{BUILDERS}.no_impl").NotImplementedBuilder

    class NotImplementedBuilder(base):
        """Says that an operator of DeepSpeed's is not there."""

        def is_compatible(self, verbose: bool = False) -> bool:
            return False

        def load(self, verbose: bool = True) -> Any:
            operator = class_name.removesuffix("Builder")
            raise NotImplementedError(
                f"DeepSpeed's operator {operator} is not written for {NAME}: leave out the option "
                "that asks for it"
            )

    return NotImplementedBuilder


class FusedAdam:
    """DeepSpeed's fused Adam by PyTorch's, which calculates in float32 and rounds once as well."""

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
        # After infinitely many steps the correction is none.
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
