"""Inductor's kernels in the source language of the device.

Inductor defines the computation of a kernel; a :class:`Dialect` writes it in a language. The result
is code for modules.h, which runs on the device in stream order.
"""

from __future__ import annotations

from ...devices import DeviceLike
from ...kernels import kernel_format
from ._dialect import Dialect

__all__ = ["Dialect", "dialect_of", "known_dialects", "register_dialect"]

_dialects: dict[str, Dialect] = {}


def register_dialect(dialect: Dialect) -> None:
    """Register the dialect of a kernel language.

    Raises:
        ValueError: a dialect for that code format exists.
    """
    if dialect.code_format in known_dialects():
        raise ValueError(f"there is a dialect for {dialect.code_format!r} already")
    _dialects[dialect.code_format] = dialect


def dialect_of(device: DeviceLike = None) -> Dialect:
    """Return the dialect of a device's language.

    Raises:
        NotImplementedError: the device does not load kernels, or its language has no dialect.
    """
    code = kernel_format(device)
    if code not in known_dialects():
        raise NotImplementedError(f"there is no dialect for {code!r}: register_dialect() adds one")
    return known_dialects()[code]


def known_dialects() -> dict[str, Dialect]:
    """Return the registered dialects by code format."""
    if not _dialects:
        from ._cpp import CppDialect
        from ._opencl import OpenCLDialect

        _dialects.update({each.code_format: each for each in (CppDialect(), OpenCLDialect())})
    return _dialects
