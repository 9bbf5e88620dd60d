"""Sums, products, extremes, all and any over some dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, parameters, tolerances
from kernels.harness import DTYPES, Device, rng
from kernels.support import Case
from numpy.typing import NDArray
from scipy import special  # type: ignore[import-untyped]


@dataclass(frozen=True)
class Reduction:
    """One operation. `values` are elements whose result is exact in any order."""

    name: str
    compute: Callable[..., Any]
    dtypes: tuple[str, ...]
    values: Sequence[float]
    to_bool: bool = False

    def of(self, given: NDArray[Any], dims: tuple[int, ...]) -> NDArray[Any]:
        wide = given if given.dtype == bool else oracle.wide(given)
        return np.asarray(self.compute(wide, axis=dims, keepdims=True))

    def __str__(self) -> str:
        return self.name


def count_nonzero(values: NDArray[Any], axis: tuple[int, ...], keepdims: bool) -> Any:
    return np.sum(values != 0, axis=axis, keepdims=keepdims)


REDUCTIONS = [
    Reduction("sum", np.sum, oracle.NUMBERS, [-2, -1, 0, 1, 2, 3]),
    Reduction("prod", np.prod, oracle.FLOATING + oracle.COMPLEX, [-1, 1, 1, 2, 0.5]),
    Reduction("prod", np.prod, oracle.INTEGERS, [1, 1, 1, 3, 5]),
    Reduction("mean", np.mean, oracle.FLOATING + oracle.COMPLEX, [-2, -1, 0, 1, 2, 3]),
    Reduction("max", np.max, oracle.BOOL + oracle.REAL, list(range(-50, 50))),
    Reduction("min", np.min, oracle.BOOL + oracle.REAL, list(range(-50, 50))),
    Reduction("all", np.all, oracle.ALL, [0] + [1] * 30, to_bool=True),
    Reduction("any", np.any, oracle.ALL, [1] + [0] * 30, to_bool=True),
    Reduction("count_nonzero", count_nonzero, oracle.ALL, [0, 0, 1, 2, 3], to_bool=True),
]
# Each operation with its parameter: an order or a correction.
STATISTICS: list[tuple[str, float]] = [
    *(("norm", order) for order in (0.0, 1.0, 2.0, 3.0, -1.5, np.inf, -np.inf)),
    *(("var", correction) for correction in (0.0, 1.0, 2.5)),
    ("std", 1.0),
    ("logsumexp", 0.0),
]
# Shapes and the dimensions to reduce: the inner ones, the outer ones, both, all, none.
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((17, 33), (1,)),
    ((17, 33), (0,)),
    ((17, 33), (0, 1)),
    ((17, 33), ()),
    ((4, 5, 6, 7), (1, 3)),
    ((4, 5, 6, 7), (0, 2)),
    ((4, 5, 6, 7), (1,)),
    ((3, 2050), (1,)),
    ((2050, 3), (0,)),
    ((2, 600, 5), (1,)),
    ((), ()),
    (layouts.DEEP, (3, 9, 15)),
]
PLACES = [layouts.contiguous, layouts.transposed, layouts.stepped, layouts.shuffled]
# More elements than one group of work items may process. Products of so many elements would
# overflow.
LARGE_SHAPES = [((3, 70_000), (1,)), ((70_000, 19), (0,)), ((30_000, 3, 2), (0, 1))]
LARGE_DTYPES = ("bool", "int64", "bfloat16", "float32", "float64")


def word(value: Any) -> str:
    return getattr(value, "__name__", str(value))


def cases() -> Iterator[Any]:
    """Each operation with its types, for all shapes and layouts."""
    for op, (shape, dims), place in itertools.product(REDUCTIONS, SHAPES, PLACES):
        yield from ((op, dtype, shape, dims, place) for dtype in op.dtypes)
    several = (layouts.contiguous, layouts.stepped)
    for op, (shape, dims), place in itertools.product(REDUCTIONS, LARGE_SHAPES, several):
        if op.name != "prod":
            large = set(LARGE_DTYPES) & {*op.dtypes}
            yield from ((op, dtype, shape, dims, place) for dtype in sorted(large))
    repeated = (layouts.expanded_rows, layouts.expanded_columns, layouts.one_element)
    for op, dims, place in itertools.product(REDUCTIONS, ((0,), (1,), (0, 1)), repeated):
        if "int32" in op.dtypes and op.name != "prod":
            yield op, "int32", layouts.MATRIX, dims, place
    for op in REDUCTIONS:
        sized = [(dtype, shape) for dtype in op.dtypes for shape in layouts.sizes(dtype)]
        for dtype, shape in sized:
            for dims in subsets(len(shape)):
                place = layouts.contiguous
                yield pytest.param(op, dtype, shape, dims, place, marks=pytest.mark.full)


def subsets(rank: int) -> list[tuple[int, ...]]:
    counts = range(rank + 1)
    return [dims for count in counts for dims in itertools.combinations(range(rank), count)]


def out_dtype(name: str, dtype: str) -> str:
    if name in ("all", "any"):
        return "bool"
    if name == "count_nonzero":
        return "int64"
    real = {"complex64": "float32", "complex128": "float64"}
    return real.get(dtype, dtype) if name in ("norm", "var", "std") else dtype


def named(name: str, rank: int, dims: tuple[int, ...], parameter: float) -> str:
    """The name of a reduction for support.toml: its dimensions, from the end, and its parameter."""
    given = {"norm": "order", "var": "correction", "std": "correction"}.get(name)
    what: dict[str, Any] = {"dims": [dim - rank for dim in dims]}
    return parameters.words(what | ({given: parameter} if given else {}))


def run(
    device: Device,
    name: str,
    dtype: str,
    values: NDArray[Any],
    dims: tuple[int, ...],
    place: layouts.Placer,
    out_place: layouts.Placer = layouts.contiguous,
    parameter: float = 0,
) -> tuple[Case, Any, Any]:
    case = Case(
        "reduce", name, dtype, place.__name__, parameters=named(name, values.ndim, dims, parameter)
    )
    given = device.array(dtype, values.shape, place, values)
    out_shape = tuple(1 if dim in dims else size for dim, size in enumerate(values.shape))
    out = device.array(out_dtype(name, dtype), out_shape, out_place)
    code = device.api.ReduceOp[name]
    device.run(case, [out], code, out, given, parameter)
    return case, out, given.values


def statistic(name: str, parameter: float, values: Any, dims: tuple[int, ...]) -> Any:
    if name == "logsumexp":
        return special.logsumexp(values, axis=dims, keepdims=True) if dims else values
    size = np.abs(values)
    if name == "norm" and np.isinf(parameter):
        return (np.max if parameter > 0 else np.min)(size, axis=dims, keepdims=True)
    if name == "norm" and parameter == 0:
        return np.sum(size != 0, axis=dims, keepdims=True)
    if name == "norm":
        return np.sum(size**parameter, axis=dims, keepdims=True) ** (1 / parameter)
    mean = np.mean(values, axis=dims, keepdims=True)
    squares = np.sum(np.abs(values - mean) ** 2, axis=dims, keepdims=True)
    result = squares / np.maximum(0, values.size / mean.size - parameter)
    return np.sqrt(result) if name == "std" else result


@pytest.mark.parametrize(("op", "dtype", "shape", "dims", "place"), list(cases()), ids=word)
def test_reduce(
    device: Device,
    op: Reduction,
    dtype: str,
    shape: tuple[int, ...],
    dims: tuple[int, ...],
    place: layouts.Placer,
) -> None:
    random = rng(op.name, dtype, shape, dims, place.__name__)
    values = np.asarray(random.choice(op.values, shape)).astype(DTYPES[dtype])
    out_place = layouts.stepped if place is layouts.stepped else layouts.contiguous
    case, out, given = run(device, op.name, dtype, values, dims, place, out_place)
    expected = op.of(given, dims)
    exact = op.name != "mean" and dtype not in oracle.COMPLEX
    (device.assert_exact if exact else device.assert_close)(case, out, expected)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("dtype", oracle.FLOATING + oracle.COMPLEX)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_errors_of_sums_stay_within_their_bound(
    device: Device, name: str, dtype: str, dims: tuple[int, ...]
) -> None:
    shape = (300, 70)
    random = rng(name, dtype, dims)
    values = random.normal(size=shape).astype(DTYPES[dtype])
    case, out, given = run(device, name, dtype, values, dims, layouts.contiguous)
    wide = oracle.wide(given)
    expected = getattr(np, name)(wide, axis=dims, keepdims=True)
    count = 1 if name == "mean" else values.size // expected.size
    total = np.sum(np.abs(wide), axis=dims, keepdims=True)
    bound = tolerances.error_of_sum(dtype, count, total)
    bound = bound + tolerances.spacing(expected, DTYPES[dtype])
    device.assert_within(case, out.read(), expected, bound)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("shape", "dims"), SHAPES[:-2], ids=str)
@pytest.mark.parametrize("dtype", oracle.FLOATING + oracle.COMPLEX)
@pytest.mark.parametrize(("name", "parameter"), STATISTICS, ids=str)
def test_statistics(
    device: Device,
    name: str,
    parameter: float,
    dtype: str,
    shape: tuple[int, ...],
    dims: tuple[int, ...],
    place: layouts.Placer,
) -> None:
    if name == "logsumexp" and dtype in oracle.COMPLEX:
        return
    random = rng(name, dtype, shape, dims, place.__name__)
    # Far from zero, where a variance from a sum of squares would lose all digits.
    values = random.normal(size=shape) + (30 if name in ("var", "std") else 0)
    if dtype in oracle.COMPLEX:
        values = values + 1j * random.normal(size=shape)
    case, out, given = run(device, name, dtype, values, dims, place, layouts.contiguous, parameter)
    wide = oracle.wide(given)
    with np.errstate(all="ignore"):
        expected = statistic(name, parameter, wide, dims)
    size = np.abs(expected) + (np.log(max(1, wide.size)) if name == "logsumexp" else 0)
    # Sums are pairwise, and in float32 if there is no wider type.
    is_wide = device.float64_arithmetic or dtype in ("float64", "complex128")
    unit = tolerances.unit_roundoff(DTYPES["float64" if is_wide else "float32"])
    steps = 4 * wide.size if is_wide else 1 + np.log2(max(1, wide.size // expected.size))
    allowed = 2 * tolerances.spacing(size, DTYPES[out.dtype]) + steps * unit * size
    device.assert_within(case, out.read(), expected, allowed)


@pytest.mark.parametrize("dtype", oracle.FLOATING)
@pytest.mark.parametrize("dims", [(0,), (1,)], ids=str)
def test_logsumexp_of_infinities_and_large_numbers(
    device: Device, dtype: str, dims: tuple[int, ...]
) -> None:
    infinity = np.inf
    values = np.asarray(
        [
            [-infinity, -infinity, -infinity],
            [1, infinity, -infinity],
            [1000, 1000, -infinity],
            [np.nan, infinity, 1],
        ]
    )
    values = values.T if dims == (0,) else values
    case, out, given = run(device, "logsumexp", dtype, values, dims, layouts.contiguous)
    device.assert_close(case, out, statistic("logsumexp", 0, oracle.wide(given), dims))


def with_nans(dtype: np.dtype[Any]) -> Any:
    """Rows and columns with a NaN at any place, and some without."""
    values = np.ones((40, 40))
    values[np.arange(40), np.arange(40)] = np.nan
    values[3:7] = values[:, 3:7] = 1
    return values


def ends(dtype: np.dtype[Any]) -> Any:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return [[least] * 40, [most] * 40, [least, most] * 20]


def nothing(dtype: np.dtype[Any]) -> Any:
    return np.zeros((5, 0))


def truths(dtype: np.dtype[Any]) -> Any:
    return [[np.nan, np.inf], [-0.0, 0.0], [-0.0, np.nan]]


def infinities(dtype: np.dtype[Any]) -> Any:
    return [[np.inf] * 40, [-np.inf] * 40]


# Functions that make special elements of a type, with operations and types.
SPECIAL: list[tuple[Callable[[np.dtype[Any]], Any], tuple[str, ...], tuple[str, ...]]] = [
    (with_nans, ("max", "min", "sum", "prod", "mean"), oracle.FLOATING),
    (infinities, ("max", "min"), oracle.FLOATING),
    (ends, ("max", "min"), oracle.INTEGERS),
    (truths, ("all", "any"), oracle.FLOATING),
    (nothing, ("sum", "prod", "mean"), oracle.FLOATING),
    (nothing, ("sum", "prod"), oracle.INTEGERS),
    (nothing, ("all", "any"), oracle.ALL),
]


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@pytest.mark.parametrize(
    ("values", "name", "dtype"),
    [
        pytest.param(values, name, dtype, id=f"{values.__name__}-{name}-{dtype}")
        for values, names, dtypes in SPECIAL
        for name in names
        for dtype in dtypes
    ],
)
def test_special_values(
    device: Device, values: Callable[[np.dtype[Any]], Any], name: str, dtype: str
) -> None:
    op = next(op for op in REDUCTIONS if op.name == name)
    chosen = np.asarray(values(DTYPES[dtype])).astype(DTYPES[dtype])
    for dims in ((0,), (1,)) if values is with_nans else ((1,),):
        case, out, given = run(device, name, dtype, chosen, dims, layouts.contiguous)
        device.assert_exact(case, out, op.of(given, dims))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        *(("uint8", "int64"), ("int32", "int64"), ("bool", "int32"), ("int8", "float32")),
        *(("float32", "float64"), ("float64", "float32"), ("bfloat16", "float64")),
        *(("float32", "complex128"), ("float32", "int64"), ("float16", "float32")),
    ],
)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "norm"])
def test_elements_are_converted_while_they_are_read(
    device: Device, name: str, source: str, target: str
) -> None:
    if name in ("mean", "norm") and target not in oracle.FLOATING:
        return
    values = rng(name, source, target).choice([0, 1, 1, 3], (17, 33))
    values[:, 5] = 0 if name != "prod" else 1
    for dims in ((0,), (1,), (0, 1)):
        parameter = 2.0 if name == "norm" else 0.0
        case = Case(
            "reduce",
            name,
            target,
            f"contiguous {source}",
            parameters=named(name, values.ndim, dims, parameter),
        )
        given = device.array(source, values.shape, layouts.contiguous, values)
        sizes = tuple(1 if dim in dims else size for dim, size in enumerate(values.shape))
        out = device.array(target, sizes)
        code = device.api.ReduceOp[name]
        answer = device.api.reduce(device.stream, code, out.view, given.view, parameter, probe=True)
        if answer is not None:
            continue  # then the caller converts
        device.run(case, [out], code, out, given, parameter)
        wide = given.values.astype(DTYPES[target])
        if name == "norm":
            computed = statistic("norm", 2, wide, dims)
        else:
            computed = getattr(np, name)(wide, axis=dims, keepdims=True)
        device.assert_close(case, out, computed)


def test_every_operation_is_tested(device: Device) -> None:
    tested = {op.name for op in REDUCTIONS} | {name for name, _ in STATISTICS}
    assert tested == {op.name for op in device.api.ReduceOp}
