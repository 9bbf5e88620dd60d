"""The tensor types of old PyTorch code, such as ``torch.<name>.FloatTensor``.

PyTorch defines these types for CPU and CUDA only. New code uses ``dtype=`` and ``device=`` instead.
There is a type for each dtype that has one in PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch

from ._build import NAME

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
]


class LegacyTensorType(type):
    """The metaclass: a call creates a tensor, ``isinstance`` checks device and dtype."""

    dtype: torch.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, torch.Tensor):
            return False
        return instance.device.type == NAME and instance.dtype is cls.dtype

    def __call__(cls, *arguments: Any) -> torch.Tensor:
        on_cpu: torch.Tensor = torch.empty(0, dtype=cls.dtype).new(*arguments)
        return on_cpu.to(NAME)


def _make(name: str, dtype: torch.dtype) -> LegacyTensorType:
    body = {
        "__doc__": f"Tensors of {dtype} on this device; a call takes sizes or a list of values.",
        "__module__": f"torch.{NAME}",
        "__qualname__": name,
        "dtype": dtype,
    }
    # Tensor.type() reads the whole type string from __name__.
    return LegacyTensorType(f"torch.{NAME}.{name}", (), body)


BFloat16Tensor = _make("BFloat16Tensor", torch.bfloat16)
BoolTensor = _make("BoolTensor", torch.bool)
ByteTensor = _make("ByteTensor", torch.uint8)
CharTensor = _make("CharTensor", torch.int8)
DoubleTensor = _make("DoubleTensor", torch.float64)
FloatTensor = _make("FloatTensor", torch.float32)
HalfTensor = _make("HalfTensor", torch.float16)
IntTensor = _make("IntTensor", torch.int32)
LongTensor = _make("LongTensor", torch.int64)
ShortTensor = _make("ShortTensor", torch.int16)
