"""Layer, RMS, group and batch normalization, and their gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, tolerances
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

EPS = 1e-3
OPERATIONS = ["layer", "rms", "group", "batch", "batch_given"]
# (outer, channel, inner), and the number of groups for "group".
SHAPES = [
    ((7, 33, 1), 3),
    ((4, 6, 35), 2),
    ((1, 1, 1), 1),
    ((3, 2, 1030), 2),
    ((2, 2100, 1), 4),
    ((1, 4, 5), 4),
    ((65, 8, 3), 1),
]


@dataclass
class Groups:
    """How an operation groups the elements of an array of one shape."""

    op: str
    shape: tuple[int, ...]
    groups: int

    @property
    def split(self) -> tuple[int, ...]:
        """The shape with its channels split: (outer, groups, channels, inner)."""
        outer, channels, inner = self.shape
        groups = self.groups if self.op == "group" else 1
        return (outer, groups, channels // groups, inner)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the split shape that one group covers."""
        return (0, 1, 3) if self.op.startswith("batch") else (2, 3)

    @property
    def size(self) -> int:
        return math.prod(self.split[axis] for axis in self.axes)

    @property
    def statistics_shape(self) -> tuple[int, ...]:
        outer, channels, _ = self.shape
        if self.op == "group":
            return (outer, self.groups)
        return (channels,) if self.op.startswith("batch") else (outer,)

    def spread(self, statistics: NDArray[Any]) -> NDArray[Any]:
        """One value for each group, repeated for all of its elements."""
        kept = [1 if axis in self.axes else size for axis, size in enumerate(self.split)]
        wide = np.broadcast_to(statistics.reshape(kept), self.split)
        return np.asarray(wide).reshape(self.shape)

    def mean(self, values: NDArray[Any]) -> NDArray[Any]:
        means = values.reshape(self.split).mean(self.axes)
        return np.asarray(means).reshape(self.statistics_shape)


def per_channel(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values.sum((0, 2)))


def bound(case: Case, count: int, total: NDArray[Any]) -> NDArray[Any]:
    """The allowed errors of a sum of `count` terms whose magnitudes add up to `total`."""
    return np.asarray(tolerances.error_of_sum(case.dtype, 2 * (count + 4), total))


def parameter(
    device: Device, dtype: str | None, shape: tuple[int, ...], random: np.random.Generator
) -> Array | None:
    if dtype is None:
        return None
    return device.array(dtype, (shape[1],), values=random.normal(size=shape[1]))


def wide_or(array: Array | None, otherwise: float) -> NDArray[Any]:
    return np.asarray([[otherwise]]) if array is None else oracle.wide(array.values)[:, None]


def check_forward(
    device: Device,
    groups: Groups,
    dtype: str,
    parameter_dtype: str | None = None,
) -> None:
    op, shape = groups.op, groups.shape
    case = Case("normalize", op, dtype, "contiguous")
    random = rng(case, shape, parameter_dtype)
    source = device.array(dtype, shape, values=random.normal(1.0, 2.0, shape))
    weight, bias = (parameter(device, parameter_dtype, shape, random) for _ in range(2))
    out = device.array(dtype, shape)
    given = op == "batch_given"
    kind, size = tolerances.accumulator(dtype), groups.statistics_shape
    means, rstds = (
        device.array(kind, size, values=random.uniform(0.5, 1.5, size) if given else None)
        for _ in range(2)
    )
    outputs = [out] if given else [out, means, rstds]
    arrays = (out, None if op == "rms" else means, rstds, source, weight, bias)
    device.run(case, outputs, device.api.NormOp[op], *arrays, EPS)
    values = oracle.wide(source.values)
    if given:
        mean, rstd = oracle.wide(means.values), oracle.wide(rstds.values)
    else:
        mean = groups.mean(values) * (op != "rms")
        rstd = 1 / np.sqrt(groups.mean((values - groups.spread(mean)) ** 2) + EPS)
        if op != "rms":
            allowed = bound(case, groups.size, groups.mean(np.abs(values)))
            device.assert_within(case, means.read(), mean, allowed)
        device.assert_within(case, rstds.read(), rstd, bound(case, groups.size, rstd))
    normalized = (values - groups.spread(mean)) * groups.spread(rstd)
    expected = normalized * wide_or(weight, 1) + wide_or(bias, 0)
    # The error of the mean depends on the magnitude of the terms, not on that of the mean.
    sizes = np.abs(mean) + groups.mean(np.abs(values))
    terms = (np.abs(values) + groups.spread(sizes)) * groups.spread(rstd)
    scale = terms * np.abs(wide_or(weight, 1)) + np.abs(wide_or(bias, 0))
    allowed = bound(case, groups.size, scale) + tolerances.spacing(expected, DTYPES[dtype])
    device.assert_within(case, out.read(), expected, allowed, signed_zeros=False)


@pytest.mark.parametrize(("shape", "groups"), SHAPES)
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
@pytest.mark.parametrize("op", OPERATIONS)
def test_normalize_of_any_shape(
    device: Device, op: str, dtype: str, affine: bool, shape: tuple[int, ...], groups: int
) -> None:
    kind = dtype if affine else None
    check_forward(device, Groups(op, shape, groups), dtype, parameter_dtype=kind)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", OPERATIONS)
def test_parameters_may_be_wider(device: Device, op: str, dtype: str) -> None:
    check_forward(device, Groups(op, (4, 6, 35), 2), dtype, parameter_dtype="float32")


@pytest.mark.full
@pytest.mark.parametrize("op", OPERATIONS)
def test_normalize_of_many_rows(device: Device, op: str) -> None:
    groups = Groups(op, (*layouts.LARGE, 1), 4)
    check_forward(device, groups, "float32", parameter_dtype="float32")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_variance_is_accurate_for_a_large_mean(device: Device, dtype: str) -> None:
    case = Case("normalize", "layer", dtype, "contiguous")
    values = np.asarray([[[500.0], [504.0]] * 512])
    source = device.array(dtype, (1, 1024, 1), values=values)
    out = device.array(dtype, (1, 1024, 1))
    mean, rstd = (device.array("float32", (1,)) for _ in range(2))
    arrays = (out, mean, rstd, source, None, None)
    device.run(case, [out, mean, rstd], device.api.NormOp.layer, *arrays, 0.0)
    device.assert_within(case, out.read(), (values - 502) / 2, 1e-3)


@pytest.mark.parametrize("number", [0.1, 1234.567, -7.7])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_equal_numbers_become_the_bias(device: Device, dtype: str, number: float) -> None:
    """If the variance is zero, an error of the mean is multiplied by 1 / sqrt(eps)."""
    case = Case("normalize", "layer", dtype, "contiguous")
    source = device.array(dtype, (2, 250, 1), values=np.full((2, 250, 1), number))
    bias = device.array(dtype, (250,), values=np.full(250, 0.25))
    out = device.array(dtype, (2, 250, 1))
    mean, rstd = (device.array("float32", (2,)) for _ in range(2))
    arrays = (out, mean, rstd, source, None, bias)
    device.run(case, [out, mean, rstd], device.api.NormOp.layer, *arrays, EPS)
    device.assert_within(case, out.read(), np.full((2, 250, 1), 0.25), 1e-5)


@dataclass
class Backward:
    """One launch of normalize_backward and its expected results."""

    device: Device
    groups: Groups
    dtype: str
    parameter_dtype: str | None = None
    wanted: tuple[bool, bool, bool] = (True, True, True)

    def check(self) -> None:
        device, op, shape = self.device, self.groups.op, self.groups.shape
        case = Case("normalize_backward", op, self.dtype, "contiguous")
        random = rng(case, shape, self.parameter_dtype)
        source, grad_out = (
            device.array(self.dtype, shape, values=random.normal(mean, 2, shape)) for mean in (1, 0)
        )
        weight = parameter(device, self.parameter_dtype, shape, random)
        kind, size = tolerances.accumulator(self.dtype), self.groups.statistics_shape
        mean, rstd = (
            device.array(kind, size, values=random.uniform(0.5, 1.5, size)) for _ in range(2)
        )
        gradients = [
            device.array(self.dtype, shape),
            *(device.array(self.parameter_dtype or self.dtype, (shape[1],)) for _ in range(2)),
        ]
        outputs = [
            array if wanted else None for array, wanted in zip(gradients, self.wanted, strict=True)
        ]
        inputs = (grad_out, source, None if op == "rms" else mean, rstd, weight)
        device.run(case, gradients, device.api.NormOp[op], *outputs, *inputs)
        means = oracle.wide(mean.values) * (op != "rms")
        values = [oracle.wide(array.values) for array in (source, grad_out, rstd)]
        results = self.expected(case, means, *values, wide_or(weight, 1))
        for out, wanted, (right, allowed) in zip(gradients, self.wanted, results, strict=True):
            if wanted:
                spacing = tolerances.spacing(right, DTYPES[out.dtype])
                device.assert_within(case, out.read(), right, allowed + spacing, signed_zeros=False)
            else:
                assert out.unchanged()

    def expected(
        self,
        case: Case,
        mean: NDArray[Any],
        values: NDArray[Any],
        gradient: NDArray[Any],
        rstd: NDArray[Any],
        weight: NDArray[Any],
    ) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """The three gradients, each with its allowed errors."""
        groups = self.groups
        normalized = (values - groups.spread(mean)) * groups.spread(rstd)
        weighted = gradient * weight
        product = weighted * normalized
        shares = [groups.mean(weighted) * (groups.op != "rms"), groups.mean(product)]
        if groups.op == "batch_given":
            shares = [0 * share for share in shares]
        result = weighted - groups.spread(shares[0]) - normalized * groups.spread(shares[1])
        scale = np.abs(weighted) + groups.spread(groups.mean(np.abs(weighted)))
        scale += np.abs(normalized) * groups.spread(groups.mean(np.abs(product)))
        count = groups.shape[0] * groups.shape[2]
        factor = groups.spread(rstd)
        terms = gradient * normalized
        return [
            (result * factor, bound(case, groups.size, scale * factor)),
            (per_channel(terms), bound(case, count, per_channel(np.abs(terms)))),
            (per_channel(gradient), bound(case, count, per_channel(np.abs(gradient)))),
        ]


@pytest.mark.parametrize(("shape", "groups"), SHAPES)
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
@pytest.mark.parametrize("op", OPERATIONS)
def test_gradients_of_any_shape(
    device: Device, op: str, dtype: str, affine: bool, shape: tuple[int, ...], groups: int
) -> None:
    kind = dtype if affine else None
    Backward(device, Groups(op, shape, groups), dtype, parameter_dtype=kind).check()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", OPERATIONS)
def test_gradients_with_wider_parameters(device: Device, op: str, dtype: str) -> None:
    Backward(device, Groups(op, (4, 6, 35), 2), dtype, parameter_dtype="float32").check()


@pytest.mark.parametrize(
    "wanted", [(True, False, False), (False, True, False), (False, False, True)]
)
@pytest.mark.parametrize("op", OPERATIONS)
def test_gradients_that_are_not_requested_are_omitted(
    device: Device, op: str, wanted: tuple[bool, bool, bool]
) -> None:
    groups = Groups(op, (4, 6, 5), 2)
    Backward(device, groups, "float32", parameter_dtype="float32", wanted=wanted).check()


def test_every_operation_is_tested(device: Device) -> None:
    assert set(OPERATIONS) == {op.name for op in device.api.NormOp}
