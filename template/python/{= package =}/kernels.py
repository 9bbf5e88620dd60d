"""Kernels that are written at run time, in the language that the device takes.

``compile_kernel`` is for people who write one kernel: it sees addresses and numbers, as the device's
own kernels do. An operator with autograd and ``torch.compile`` is made of it by
``torch.library.custom_op``.
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
"""One to three numbers; those that are left out are 1."""


def kernel_format(device: DeviceLike = None) -> str:
    """Return what the device takes as code, such as ``"opencl-c"``.

    Raises:
        NotImplementedError: it takes none.
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
        """Enqueue the kernel, behind what the stream has to do before.

        Args:
            grid: how many groups of work items.
            block: how many work items a group has.
            args: one for each parameter, in order. A tensor of the kernel's device is passed as the
                address of its first element: sizes and strides are not seen. An int is a C ``int``
                and a float a C ``double``; a number of another type is one of :mod:`ctypes`, such as
                ``ctypes.c_float(0.5)``.
            shared_mem: bytes that the work items of a group have in common.
            stream: where to, the current stream of the device unless given.

        Raises:
            TypeError: an argument of a type that kernels do not take.
            ValueError: a tensor of another device, a stream of another device, a number that fits
                no ``int``, or a size that is none.
            RuntimeError: the kernel does not take these arguments, or no group so large.
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
        """Name and device."""
        return f"<kernel {self.name} of {self.device}>"


def compile_kernel(
    kernel_source: str | bytes,
    kernel_name: str,
    options: Sequence[str] = (),
    *,
    device: DeviceLike = None,
) -> CompiledKernel:
    """Compile a kernel from source, and return what launches it.

    It is for one device, and gone with the last reference to it; the device keeps what it still
    runs, and graphs keep what they launch. ``torch.cuda`` has the same as ``_compile_kernel``.

    Args:
        kernel_source: the source, in the language that :func:`kernel_format` names; or, as bytes, code
            that another compiler has made, in that format. For ``"elf-host"``, the simulator's,
            source is C++: a function that is called once for each group, as
            ``void scale(const Group& group, float* out, double factor)``, where ``group`` has
            ``index``, ``groups`` and ``items`` in three dimensions, and ``shared``.
        kernel_name: the function's name.
        options: for the compiler, in its own words.
        device: what the kernel runs on, the current device unless given.

    Raises:
        NotImplementedError: the device takes no kernels at run time.
        RuntimeError: the source does not compile, with what the compiler says; or there is no
            function of the name.
    """
    index = device_index(device)
    return CompiledKernel(
        kernel_name, index, load_kernel(kernel_source, kernel_name, options, index)
    )


def load_kernel(
    source: str | bytes, name: str, options: Sequence[str], device: int, cache: Path | None = None
) -> _C.CodeFunction:
    """Return the function of a module that is compiled from source.

    Args:
        cache: a folder for what the host has compiled; a device that compiles has its own.
    """
    code, words = kernel_code(source, name, options, device, cache)
    return _C.CodeFunction(_C.CodeModule(device, code, words), name)


def kernel_code(
    source: str | bytes, name: str, options: Sequence[str], device: int, cache: Path | None = None
) -> tuple[bytes, str]:
    """Return what the device takes for a source, and the options that it takes with it."""
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
    """A tensor as it is; of a number the bytes that a kernel gets."""
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
