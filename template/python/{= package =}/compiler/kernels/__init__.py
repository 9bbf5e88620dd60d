"""Inductor's kernels in the language that the device takes, by a dialect.

Inductor says what a kernel computes; a :class:`Dialect` says how its language writes that. What comes
out is code of modules.h, which runs on the device, in the order of the stream.
"""

from __future__ import annotations

from ...devices import DeviceLike
from ...kernels import kernel_format
from ._dialect import Dialect

__all__ = ["Dialect", "dialect_of", "known_dialects", "register_dialect"]

_dialects: dict[str, Dialect] = {}


def register_dialect(dialect: Dialect) -> None:
    """Add the language of a device's kernels.

    Raises:
        ValueError: there is one for that code already.
    """
    if dialect.code_format in known_dialects():
        raise ValueError(f"there is a dialect for {dialect.code_format!r} already")
    _dialects[dialect.code_format] = dialect


def dialect_of(device: DeviceLike = None) -> Dialect:
    """Return the dialect of a device's language.

    Raises:
        NotImplementedError: the device takes no kernels, or there is no dialect for its language.
    """
    code = kernel_format(device)
    if code not in known_dialects():
        raise NotImplementedError(f"there is no dialect for {code!r}: register_dialect() adds one")
    return known_dialects()[code]


def known_dialects() -> dict[str, Dialect]:
    """Return the dialects that there are, by the code that they write."""
    if not _dialects:
        from ._cpp import CppDialect
        from ._opencl import OpenCLDialect

        _dialects.update({each.code_format: each for each in (CppDialect(), OpenCLDialect())})
    return _dialects
