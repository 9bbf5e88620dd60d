"""Kernels that are compiled at run time, in the source language of the device.

``compile_kernel`` compiles a single kernel, whose arguments are addresses and numbers. Wrap it with
``torch.library.custom_op`` to get an operator for autograd and ``torch.compile``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch

from . import _C, _host_kernels
from ._build import NAME
from .devices import DeviceLike, device_index
from .streams import StreamContext, current_stream

__all__ = ["compile_kernel", "kernel_format"]

Extent: TypeAlias = "Sequence[int]"
"""One to three numbers; missing numbers are 1."""


def kernel_format(device: DeviceLike = None) -> str:
    """Return the format of the code that the device loads, such as ``"opencl-c"``.

    Raises:
        NotImplementedError: the device does not load kernels at run time.
    """
    format: str = _C.code_format(device_index(device))
    return format


class CompiledKernel:
    """A kernel of one device, made by :func:`compile_kernel`."""

    def __init__(self, name: str, device: int, function: _C.CodeFunction) -> None:
        self.name = name
        self.device = torch.device(NAME, device)
        self._function = function

    def __call__(
        self,
        grid: Extent = (1, 1, 1),
        block: Extent = (1, 1, 1),
        args: Sequence[Any] = (),
        shared_mem: int = 0,
        stream: torch.Stream | None = None,
    ) -> None:
        """Enqueue the kernel on a stream.

        Args:
            grid: the number of groups of work items.
            block: the number of work items of a group.
            args: one for each parameter, in order. A tensor of the kernel's device is passed as the
                address of its first element, without sizes and strides. An int is passed as a C
                ``int`` and a float as a C ``double``; for other types pass a :mod:`ctypes` number,
                such as ``ctypes.c_float(0.5)``.
            shared_mem: bytes of memory that the work items of a group share.
            stream: the stream; the default is the current stream of the device.

        Raises:
            TypeError: an argument has an unsupported type.
            ValueError: a tensor or the stream is on another device, a number does not fit in an
                ``int``, or ``grid``, ``block`` or ``shared_mem`` is invalid.
            RuntimeError: the arguments do not match the kernel, or the group is too large.
        """
        groups, items = _extent("grid", grid), _extent("block", block)
        if not isinstance(shared_mem, int) or shared_mem < 0:
            raise ValueError(f"shared_mem is a number of bytes from 0 on, not {shared_mem!r}")
        arguments = [_argument(number, value) for number, value in enumerate(args, 1)]
        if stream is None or stream == current_stream(self.device):
            self._function.launch(groups, items, arguments, shared_mem)
            return
        if stream.device != self.device:
            raise ValueError(f"the kernel runs on {self.device}, the stream on {stream.device}")
        with StreamContext(stream):
            self._function.launch(groups, items, arguments, shared_mem)
        for argument in arguments:
            if isinstance(argument, torch.Tensor):
                argument.record_stream(stream)

    def __repr__(self) -> str:
        """Return the name and the device."""
        return f"<kernel {self.name} of {self.device}>"


def compile_kernel(
    kernel_source: str | bytes,
    kernel_name: str,
    options: Sequence[str] = (),
    *,
    device: DeviceLike = None,
) -> CompiledKernel:
    """Compile a kernel from source, and return a callable that launches it.

    The kernel is for one device, and is released with the last reference to it. Running work and
    graphs keep the kernels that they use. The equivalent in ``torch.cuda`` is ``_compile_kernel``.

    Args:
        kernel_source: the source, in the language that :func:`kernel_format` names; or bytes with
            compiled code in that format. For ``"elf-host"``, the simulator's format, the source is
            C++: a function that is called once for each group, such as
            ``void scale(const Group& group, float* out, double factor)``, where ``group`` has
            ``index``, ``groups`` and ``items`` in three dimensions, and ``shared``.
        kernel_name: the name of the function.
        options: options for the compiler.
        device: the device that the kernel runs on; the default is the current device.

    Raises:
        NotImplementedError: the device does not load kernels at run time.
        RuntimeError: the source does not compile, with the compiler's output; or there is no
            function of that name.
        TypeError: ``options`` is one string.
    """
    index = device_index(device)
    return CompiledKernel(
        kernel_name, index, load_kernel(kernel_source, kernel_name, options, index)
    )


def load_kernel(
    source: str | bytes, name: str, options: Sequence[str], device: int, cache: Path | None = None
) -> _C.CodeFunction:
    """Compile a module from source, and return its function.

    Args:
        cache: a folder for code that the host compiles. A device that compiles has its own cache.
    """
    code, words = kernel_code(source, name, options, device, cache)
    return _C.CodeFunction(_C.CodeModule(device, code, words), name)


def kernel_code(
    source: str | bytes, name: str, options: Sequence[str], device: int, cache: Path | None = None
) -> tuple[bytes, str]:
    """Return the code for the device, and the compiler options to load it with."""
    if isinstance(options, str):
        raise TypeError(f"options is a sequence of strings, not {options!r}")
    words = " ".join(options)
    if kernel_format(device) == "elf-host" and isinstance(source, str):
        return _host_kernels.compile_source(source, name, options, cache), ""
    return source.encode() if isinstance(source, str) else source, words


def _extent(name: str, given: Extent) -> tuple[int, int, int]:
    sizes = tuple(given) if isinstance(given, Sequence) else ()
    fit = all(isinstance(size, int) and 1 <= size < 2**31 for size in sizes)
    if not fit or not 1 <= len(sizes) <= 3:
        raise ValueError(f"{name} is one to three numbers from 1 on, not {given!r}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _argument(number: int, value: Any) -> torch.Tensor | bytes:
    """Return a tensor unchanged, and a number as the bytes that the kernel receives."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, ctypes._SimpleCData):
        return bytes(value)
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise ValueError(
                f"argument {number}, {value}, does not fit an int: "
                f"pass ctypes.c_int64({value}) to a kernel that takes 64 bits"
            )
        return bytes(ctypes.c_int32(value))
    if isinstance(value, float):
        return bytes(ctypes.c_double(value))
    raise TypeError(
        f"argument {number} is of type {type(value).__name__}: "
        "kernels take tensors, ints, floats and numbers of ctypes"
    )
