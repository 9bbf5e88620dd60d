"""Compares results of the device with those of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from backend import DEVICE
from conformance.samples import map_values, tensors_of

# Relative and absolute, by dtype. The device adds and multiplies in another order than the CPU.
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float32: (3e-4, 1e-4),
    torch.complex64: (3e-4, 1e-4),
    torch.bfloat16: (4e-2, 4e-2),
    torch.float16: (4e-3, 4e-3),
}


class WrongResult(AssertionError):
    """The result of the device differs from that of the CPU."""


def leaves(value: Any) -> list[Any]:
    """Return the leaves of nested lists, tuples and dictionaries."""
    found: list[Any] = []
    map_values(value, found.append)
    return found


def check(
    actual: Any,
    expected: Any,
    *,
    tolerance: tuple[float, float] | None = None,
    values: bool = True,
    any_dtype: bool = False,
) -> None:
    """Compare two results: structure, devices, dtypes, shapes and, by default, values."""
    mine, theirs = leaves(actual), leaves(expected)
    if len(mine) != len(theirs):
        raise WrongResult(f"{len(mine)} results, expected {len(theirs)}")
    for one, other in zip(mine, theirs, strict=True):
        if not isinstance(other, torch.Tensor):
            check_plain(one, other, tolerance, values)
            continue
        if not isinstance(one, torch.Tensor):
            raise WrongResult(f"{type(one).__name__}, expected a tensor")
        if one.device.type != DEVICE:
            raise WrongResult(f"the result is on {one.device}")
        if one.shape != other.shape:
            raise WrongResult(f"shape {tuple(one.shape)}, expected {tuple(other.shape)}")
        if not any_dtype and one.dtype != other.dtype:
            raise WrongResult(f"{one.dtype}, expected {other.dtype}")
        if values:
            check_values(one, other, tolerance, any_dtype)


def check_plain(
    actual: Any, expected: Any, tolerance: tuple[float, float] | None, values: bool
) -> None:
    if type(actual) is not type(expected):
        raise WrongResult(f"{type(actual).__name__}, expected {type(expected).__name__}")
    if not values or actual == expected or isinstance(expected, torch.device):
        return
    if not isinstance(expected, (float, complex)):
        raise WrongResult(f"{actual}, expected {expected}")
    check_values(torch.tensor(actual), torch.tensor(expected), tolerance, False)


def check_values(
    actual: torch.Tensor,
    expected: torch.Tensor,
    tolerance: tuple[float, float] | None,
    any_dtype: bool,
) -> None:
    relative, absolute = tolerance or TOLERANCES.get(expected.dtype, (0, 0))
    actual = actual.detach().cpu().resolve_conj().resolve_neg()
    expected = expected.detach().resolve_conj().resolve_neg()
    if actual.dtype is expected.dtype is torch.complex32:  # which the CPU cannot compare
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected)
    if actual.layout is torch.strided and torch.equal(actual, expected):
        return
    if expected.dim() > 64:  # assert_close would need more than 64 dimensions
        actual, expected = actual.reshape(-1), expected.reshape(-1)
    try:
        torch.testing.assert_close(
            actual,
            expected,
            rtol=relative,
            atol=absolute,
            equal_nan=True,
            check_dtype=not any_dtype,
            check_stride=False,
        )
    except AssertionError as error:
        raise WrongResult(" ".join(str(error).split())) from None


def is_exact(
    actual: Any, expected: Any, precise: Callable[[], Any], options: dict[str, Any]
) -> bool:
    """Whether a result is the rounded precise one, and equals the CPU's except for its values."""
    try:
        check(actual, expected, **{**options, "values": False})
        rounded = [
            one.to(other.dtype) if isinstance(one, torch.Tensor) else one
            for one, other in zip(leaves(precise()), leaves(expected), strict=True)
        ]
        check(leaves(actual), rounded, **options)
    except Exception:
        return False
    return True


def same(one: Any, other: Any) -> bool:
    """Whether two results of the CPU agree."""
    try:
        for first, second in zip(tensors_of(one), tensors_of(other), strict=True):
            check_values(first, second, None, False)
    except WrongResult:
        return False
    return True
