"""Triton's interface to the device."""

from __future__ import annotations

from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase


def name() -> str:
    """Return PyTorch's name for the device, which is not yet set when PyTorch imports Triton."""
    return torch._C._get_privateuse1_backend_name()


class Driver(DriverBase):
    """The device as PyTorch knows it."""

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return GPUTarget(name(), "", 1)

    def get_active_torch_device(self) -> torch.device:
        return torch.device(name())

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError("nothing is launched")

    def get_benchmarker(self) -> Any:
        raise NotImplementedError("nothing is launched")
