"""Maxima and averages of windows, and their gradients."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from kernels import oracle, tolerances
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

Window = tuple[tuple[int, ...], list[tuple[int, ...]], int]
"""An output element, the input elements of its window, and their number including padding."""


@dataclass(frozen=True)
class Windows:
    """The windows of one pooling. Without `kernel` it is adaptive."""

    size: tuple[int, ...]
    out: tuple[int, ...]
    kernel: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    planes: tuple[int, int] = (2, 3)

    def along(self, dim: int, o: int) -> tuple[list[int], int]:
        size, out = self.size[dim], self.out[dim]
        if not self.kernel:
            inside = list(range(o * size // out, -(-(o + 1) * size // out)))
            return inside, len(inside)
        start = o * self.stride[dim] - self.padding[dim]
        every = [start + t * self.dilation[dim] for t in range(self.kernel[dim])]
        padded = [at for at in every if at < size + self.padding[dim]]
        return [at for at in every if 0 <= at < size], len(padded)

    def __iter__(self) -> Iterator[Window]:
        for index in itertools.product(*map(range, self.out)):
            parts = [self.along(dim, o) for dim, o in enumerate(index)]
            inside = list(itertools.product(*(part for part, _ in parts)))
            yield index, inside, int(np.prod([count for _, count in parts]))

    def params(self, api: Any, **more: Any) -> Any:
        if not self.kernel:
            return api.PoolParams.adaptive(len(self.size))
        lists = (self.kernel, self.stride, self.padding, self.dilation)
        return api.PoolParams(*map(list, lists), **more)

    @property
    def input(self) -> tuple[int, ...]:
        return (*self.planes, *self.size)

    @property
    def output(self) -> tuple[int, ...]:
        return (*self.planes, *self.out)

    def __str__(self) -> str:
        parts = (self.size, self.out, self.kernel, self.stride, self.padding, self.dilation)
        return "-".join("x".join(map(str, part)) for part in parts if part)


WINDOWS = [
    Windows((9,), (4,), (3,), (2,), (0,), (1,)),
    Windows((9,), (5,), (3,), (2,), (1,), (1,)),
    Windows((6, 8), (3, 4), (2, 2), (2, 2), (0, 0), (1, 1)),
    Windows((7, 8), (4, 8), (3, 3), (2, 1), (1, 1), (1, 1)),
    # With ceil_mode, the last windows extend beyond the input.
    Windows((7, 6), (4, 3), (2, 3), (2, 2), (0, 1), (1, 1)),
    Windows((5, 6, 4), (2, 5, 2), (2, 2, 3), (3, 1, 2), (1, 0, 1), (1, 1, 1)),
    Windows((7,), (3,)),
    Windows((7, 6), (3, 4)),
    Windows((4, 3), (7, 3)),
    Windows((5, 4, 6), (2, 3, 1)),
]
DILATED = [
    Windows((11,), (3,), (3,), (2,), (1,), (3,)),
    Windows((9, 8), (4, 5), (3, 2), (2, 1), (2, 0), (2, 3)),
]
MAXIMA = [*WINDOWS, *DILATED]
AVERAGED = ("int64", *oracle.FLOATING)
DIVISORS: list[dict[str, Any]] = [
    {"count_include_pad": True},
    {"count_include_pad": False},
    {"count_include_pad": True, "divisor": 4},
]


def maxima(windows: Windows, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The maximum of each window and its index. NaN is larger than any number."""
    out = np.zeros(windows.output, values.dtype)
    places = np.zeros(windows.output, np.int64)
    for index, inside, _ in windows:
        flat = np.asarray([np.ravel_multi_index(at, windows.size) for at in inside])
        window = values.reshape(*windows.planes, -1)[..., flat]
        missing = window != window
        best = np.where(
            missing.any(-1),
            missing.shape[-1] - 1 - missing[..., ::-1].argmax(-1),
            np.where(missing, -np.inf, window).argmax(-1),
        )
        out[(..., *index)] = np.take_along_axis(window, best[..., None], -1)[..., 0]
        places[(..., *index)] = flat[best]
    return out, places


def shares(windows: Windows, more: dict[str, Any]) -> NDArray[np.float64]:
    """The weight of each input element in each output element's average."""
    matrix = np.zeros((int(np.prod(windows.out)), int(np.prod(windows.size))))
    for row, (_, inside, padded) in enumerate(windows):
        count = len(inside)
        if windows.kernel:
            count = more.get("divisor") or (padded if more.get("count_include_pad") else count)
        for at in inside:
            matrix[row, np.ravel_multi_index(at, windows.size)] = 1 / count
    return matrix


def assert_near(
    device: Device, case: Case, out: Array, wanted: NDArray[Any], total: NDArray[Any]
) -> None:
    """Compares sums of at most a hundred numbers whose magnitudes add up to `total`."""
    bound = tolerances.error_of_sum(case.dtype, 100, total)
    allowed = bound + tolerances.spacing(wanted, DTYPES[case.dtype])
    device.assert_within(case, out.read(), wanted, allowed, signed_zeros=False)


def run_pool(
    device: Device, case: Case, params: Any, out: Array, indices: Array | None, given: Array
) -> None:
    code = device.api.PoolOp[case.op]
    device.run(case, [out, indices], code, params, out, indices, given)


def run_backward(
    device: Device, case: Case, params: Any, grad_in: Array, grad_out: Array, indices: Array | None
) -> None:
    code = device.api.PoolOp[case.op]
    device.run(case, [grad_in], code, params, grad_in, grad_out, indices)


def check_maxima(device: Device, dtype: str, windows: Windows, values: NDArray[Any]) -> None:
    case = Case("pool", "max", dtype, "contiguous")
    given = device.array(dtype, windows.input, values=values)
    out = device.array(dtype, windows.output)
    indices = device.array("int64", windows.output)
    run_pool(device, case, windows.params(device.api), out, indices, given)
    wanted, wanted_places = maxima(windows, given.values)
    device.assert_exact(case, out, wanted)
    device.assert_exact(case, indices, wanted_places)


@pytest.mark.parametrize("windows", MAXIMA, ids=str)
@pytest.mark.parametrize("dtype", oracle.REAL)
def test_maxima(device: Device, dtype: str, windows: Windows) -> None:
    # Few different numbers, so that many of them are equal.
    values = rng(dtype, windows).integers(0 if dtype == "uint8" else -3, 4, windows.input)
    check_maxima(device, dtype, windows, values)


@pytest.mark.parametrize("windows", MAXIMA, ids=str)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_maxima_of_special_values(device: Device, dtype: str, windows: Windows) -> None:
    values = rng(dtype, windows).choice(
        [-np.inf, np.inf, np.nan, 0.0, 1.0], windows.input, p=[0.6, 0.1, 0.1, 0.1, 0.1]
    )
    check_maxima(device, dtype, windows, values)


def test_dilation_may_skip_the_whole_input(device: Device) -> None:
    windows = Windows((1,), (1,), (2,), (1,), (1,), (2,), planes=(1, 1))
    case = Case("pool", "max", "float32", "contiguous")
    given = device.array("float32", (1, 1, 1), values=np.ones((1, 1, 1)))
    out, indices = device.array("float32", (1, 1, 1)), device.array("int64", (1, 1, 1))
    run_pool(device, case, windows.params(device.api), out, indices, given)
    device.assert_exact(case, out, np.full((1, 1, 1), -np.inf))
    device.assert_exact(case, indices, np.full((1, 1, 1), -1))
    case = Case("pool_backward", "max", "float32", "contiguous")
    run_backward(device, case, windows.params(device.api), given, out, indices)
    device.assert_exact(case, given, np.zeros((1, 1, 1)))


@pytest.mark.parametrize("more", DIVISORS, ids=["padded", "inside", "divisor"])
@pytest.mark.parametrize("windows", WINDOWS, ids=str)
@pytest.mark.parametrize("dtype", AVERAGED)
def test_averages(device: Device, dtype: str, windows: Windows, more: dict[str, Any]) -> None:
    case = Case("pool", "average", dtype, "contiguous")
    values = rng(dtype, windows).integers(-9, 10, windows.input)
    given = device.array(dtype, windows.input, values=values)
    out = device.array(dtype, windows.output)
    run_pool(device, case, windows.params(device.api, **more), out, None, given)
    flat = values.reshape(*windows.planes, -1)
    wanted = (flat @ shares(windows, more).T).reshape(windows.output)
    if dtype == "int64":
        device.assert_exact(case, out, np.trunc(wanted + np.sign(wanted) * 1e-9))
    else:
        total = (np.abs(flat) @ shares(windows, more).T).reshape(windows.output)
        assert_near(device, case, out, wanted, total)


@pytest.mark.parametrize("windows", MAXIMA, ids=str)
@pytest.mark.parametrize("dtype", AVERAGED)
def test_gradients_of_maxima(device: Device, dtype: str, windows: Windows) -> None:
    check_gradient(device, "max", dtype, windows, {})


@pytest.mark.parametrize("more", DIVISORS, ids=["padded", "inside", "divisor"])
@pytest.mark.parametrize("windows", WINDOWS, ids=str)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_gradients_of_averages(
    device: Device, dtype: str, windows: Windows, more: dict[str, Any]
) -> None:
    check_gradient(device, "average", dtype, windows, more)


def check_gradient(
    device: Device, op: str, dtype: str, windows: Windows, more: dict[str, Any]
) -> None:
    case = Case("pool_backward", op, dtype, "contiguous")
    random = rng(op, dtype, windows)
    # Multiples of small numbers, so that sums are exact.
    values = random.integers(-3, 4, windows.output)
    grad_out = device.array(dtype, windows.output, values=values)
    grad_in = device.array(dtype, windows.input)
    wanted = np.zeros((*windows.planes, int(np.prod(windows.size))))
    flat = values.reshape(*windows.planes, -1)
    indices = None
    if op == "max":
        _, places = maxima(
            windows, random.permutation(int(np.prod(windows.input))).reshape(windows.input)
        )
        indices = device.array("int64", windows.output, values=places)
        for plane in np.ndindex(windows.planes):
            np.add.at(wanted[plane], places[plane].ravel(), flat[plane])
    else:
        wanted = flat @ shares(windows, more)
    run_backward(device, case, windows.params(device.api, **more), grad_in, grad_out, indices)
    wanted = wanted.reshape(windows.input)
    if op == "max":
        device.assert_exact(case, grad_in, wanted)
    else:
        total = (np.abs(flat) @ shares(windows, more)).reshape(windows.input)
        assert_near(device, case, grad_in, wanted, total)


def test_every_operation_is_tested(device: Device) -> None:
    assert {"max", "average"} == {op.name for op in device.api.PoolOp}
