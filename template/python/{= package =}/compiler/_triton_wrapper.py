"""Writes the launches of Inductor's Triton kernels."""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

from typing import Any

import torch
from torch._inductor.virtualized import V

from ._wrapper import Wrapper


class TritonWrapper(Wrapper):
    """Makes the kernel's device current for each launch.

    Triton's drivers launch on the current device, and Inductor changes it only for devices of its
    list of GPUs.
    """

    def generate_kernel_call(
        self, *arguments: Any, device: torch.device | None = None, **keywords: Any
    ) -> None:
        device = device or V.graph.get_current_device_or_throw()
        self.codegen_device_guard_enter(device.index)
        super().generate_kernel_call(*arguments, device=device, **keywords)
        self.codegen_device_guard_exit()
