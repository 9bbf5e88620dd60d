"""out = softmax(scale * q @ k^T + mask) @ v, and its gradients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, tolerances
from kernels.harness import DTYPES, Array, Device, rng
from kernels.philox import philox
from kernels.support import Case
from numpy.typing import NDArray


def sequence_first(shape: tuple[int, ...]) -> layouts.Placement:
    """(batch, rows, heads, width) in memory, as a projection writes it."""
    _, heads, rows, width = shape
    strides = (heads * rows * width, width, heads * width, 1)
    return layouts.Placement.of(shape, strides)


def packed(shape: tuple[int, ...]) -> layouts.Placement:
    """The same, between two more arrays of the same size."""
    _, heads, rows, width = shape
    strides = (3 * heads * rows * width, width, 3 * heads * width, 1)
    return layouts.Placement.of(shape, strides, offset=heads * width)


PLACES = [layouts.contiguous, layouts.transposed, layouts.stepped, sequence_first, packed]


@dataclass
class Problem:
    """The arguments of one launch."""

    dtype: str
    batch: int = 2
    heads: int = 4
    kv_heads: int = 4
    queries: int = 5
    keys: int = 7
    width: int = 6
    value_width: int = 3
    causal: bool = False
    mask: str = ""
    dropout: float = 0.0
    place: layouts.Placer = layouts.contiguous
    name: str = "attention"
    scale: float = field(default=0.4, init=False)

    @property
    def scores(self) -> tuple[int, ...]:
        return (self.batch, self.heads, self.queries, self.keys)

    def shape(self, name: str) -> tuple[int, ...]:
        heads = self.heads if name in ("q", "out") else self.kv_heads
        rows = self.queries if name in ("q", "out") else self.keys
        return (self.batch, heads, rows, self.width if name in ("q", "k") else self.value_width)

    @property
    def case(self) -> Case:
        options = [self.place.__name__, self.mask, "causal" * self.causal]
        return Case(self.name, "-", self.dtype, "_".join(filter(None, options)))

    @property
    def wide(self) -> str:
        return "float64" if self.dtype == "float64" else "float32"

    def params(self, device: Device, **arrays: Array | None) -> Any:
        return device.descriptor(
            "AttentionParams",
            scale=self.scale,
            causal="top_left" if self.causal else "none",
            dropout=self.dropout,
            philox=device.api.PhiloxState(7, 0),
            **arrays,
        )


class Run:
    """The arrays of one problem on the device, and the oracle's results."""

    def __init__(self, device: Device, problem: Problem) -> None:
        self.device, self.problem = device, problem
        random = rng(problem)
        self.q, self.k, self.v = (
            device.array(problem.dtype, shape, problem.place, random.normal(size=shape).clip(-2, 2))
            for shape in map(problem.shape, "qkv")
        )
        self.out = device.array(problem.dtype, problem.shape("out"), problem.place)
        self.logsumexp = device.array(problem.wide, problem.scores[:3])
        self.mask = self.make_mask(random)

    def make_mask(self, random: np.random.Generator) -> Array | None:
        problem = self.problem
        if problem.mask == "bool":
            values = random.random(problem.scores) < 0.7
            values[..., 1, :] = False
            return self.device.array("bool", problem.scores, values=values)
        if problem.mask == "shared":
            values = random.normal(size=problem.scores)
            return self.device.array(problem.dtype, problem.scores, shared, values)
        if problem.mask == "added":
            values = random.normal(size=problem.scores)
            values[random.random(problem.scores) < 0.3] = -np.inf
            values[..., 1, :] = -np.inf
            return self.device.array(problem.dtype, problem.scores, layouts.transposed, values)
        return None

    @property
    def inputs(self) -> tuple[Array, ...]:
        return (self.q, self.k, self.v)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Keys or values, repeated for the heads that share them."""
        return np.repeat(values, self.problem.heads // self.problem.kv_heads, 1)

    def gathered(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sum over the heads that share a key."""
        batch, heads, rows, width = values.shape
        groups = self.problem.kv_heads
        return np.asarray(values.reshape(batch, groups, heads // groups, rows, width).sum(2))

    def expected(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Probabilities, the logarithms of their sums, and the factors of dropout."""
        problem = self.problem
        q, k = oracle.wide(self.q.values), self.spread(oracle.wide(self.k.values))
        scores = problem.scale * q @ k.swapaxes(2, 3)
        if self.mask is not None:
            mask = self.mask.values
            scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        if problem.causal:
            scores = np.where(np.tri(problem.queries, problem.keys, dtype=bool), scores, -np.inf)
        top = np.maximum(scores.max(3, keepdims=True), -1e9)
        total = np.exp(scores - top).sum(3, keepdims=True)
        with np.errstate(divide="ignore"):
            logarithms = np.where(total > 0, top + np.log(total), np.inf)
        kept = 1 - problem.dropout
        factor = np.ones(scores.shape)
        if problem.dropout:
            lanes = philox(7, 0, scores.size // 4 + 1).reshape(-1)[: scores.size]
            factor = (lanes.reshape(scores.shape) / 2.0**32 < kept) / kept
        return np.exp(scores - logarithms), logarithms[..., 0], factor


def shared(shape: tuple[int, ...]) -> layouts.Placement:
    """One mask for all heads."""
    return layouts.Placement.of(shape, (0, 0, shape[3], 1))


def allowed(case: Case, terms: int, scale: NDArray[Any], expected: NDArray[Any]) -> NDArray[Any]:
    """The errors of sums of `terms` products of the magnitude of `scale`."""
    accumulator = DTYPES["float64" if case.dtype == "float64" else "float32"]
    # The errors of the exponents have the magnitude of the scores, which is below 16.
    units = 2 * terms + 64
    bound = units * tolerances.unit_roundoff(accumulator) * scale
    return np.asarray(bound + tolerances.spacing(expected, DTYPES[case.dtype]))


def check_forward(device: Device, problem: Problem) -> Run:
    run = Run(device, problem)
    case = problem.case

    arrays = (run.out, run.logsumexp, *run.inputs)
    device.run(case, arrays[:2], *arrays, problem.params(device, mask=run.mask))
    probabilities, logarithms, factor = run.expected()
    values = run.spread(oracle.wide(run.v.values))
    right = probabilities * factor @ values
    scale = probabilities * factor @ np.abs(values)
    bound = allowed(case, problem.keys + problem.width, scale, right)
    device.assert_within(case, run.out.read(), right, bound, signed_zeros=False)
    finite = np.where(np.isfinite(logarithms), np.abs(logarithms), 0)
    bound = (problem.keys + problem.width + 64) * tolerances.unit_roundoff(DTYPES[problem.wide])
    device.assert_within(case, run.logsumexp.read(), logarithms, bound * (finite + 4))
    return run


def check_backward(device: Device, problem: Problem, with_mask_gradient: bool = False) -> None:
    run = Run(device, problem)
    problem.name = "attention_backward"
    case = problem.case
    probabilities, logarithms, factor = run.expected()
    q, k, v = (oracle.wide(array.values) for array in (run.q, run.k, run.v))
    k, v = run.spread(k), run.spread(v)
    run.out.set((probabilities * factor @ v).astype(run.out.storage.dtype))
    run.logsumexp.set(logarithms.astype(run.logsumexp.storage.dtype))
    shape = problem.shape("out")
    grad_out = device.array(
        problem.dtype, shape, sequence_first, rng(problem, "gradient").normal(size=shape)
    )
    gradients = [device.array(problem.dtype, problem.shape(name), problem.place) for name in "qkv"]
    grad_mask = device.array(problem.dtype, problem.scores) if with_mask_gradient else None
    outputs = (*gradients, grad_mask)
    params = problem.params(
        device, mask=run.mask, out=run.out, logsumexp=run.logsumexp, grad_mask=grad_mask
    )
    device.run(case, outputs, *gradients, grad_out, *run.inputs, params)
    gradient, out = oracle.wide(grad_out.values), oracle.wide(run.out.values)
    share = (gradient * out).sum(3, keepdims=True)
    # A device may calculate it from `out` before it was rounded.
    rounded = (np.abs(gradient) * tolerances.spacing(out, DTYPES[case.dtype])).sum(3, keepdims=True)
    rounded = probabilities * rounded / 2
    of_scores = probabilities * (gradient @ v.swapaxes(2, 3) * factor - share)
    size = np.abs(gradient) @ np.abs(v).swapaxes(2, 3) * factor
    size = probabilities * (size + np.abs(gradient * out).sum(3, keepdims=True))
    dropped = (probabilities * factor).swapaxes(2, 3)
    columns = np.abs(size).swapaxes(2, 3)
    scale = problem.scale
    in_keys = scale * rounded.swapaxes(2, 3) @ np.abs(q)
    # The expected result, the magnitude of its terms, and the error from the rounding of `out`.
    results = [
        (scale * of_scores @ k, scale * size @ np.abs(k), scale * rounded @ np.abs(k)),
        (
            run.gathered(scale * of_scores.swapaxes(2, 3) @ q),
            run.gathered(columns @ np.abs(q)),
            run.gathered(in_keys),
        ),
        (run.gathered(dropped @ gradient), run.gathered(dropped @ np.abs(gradient)), 0),
        (of_scores, size, rounded),
    ]
    terms = problem.keys + problem.queries + problem.width + problem.value_width
    for array, (right, sizes, more) in zip(outputs, results, strict=True):
        if array is None:
            continue
        bound = allowed(case, terms, sizes, right) + more
        device.assert_within(case, array.read(), right, bound, signed_zeros=False)


SIZES: list[dict[str, int]] = [
    {"batch": 1, "heads": 1, "kv_heads": 1, "queries": 1, "keys": 1, "width": 1, "value_width": 1},
    {"queries": 70, "keys": 33, "width": 16, "value_width": 16},
    {"queries": 3, "keys": 130, "width": 8},
    {"queries": 131, "keys": 129, "heads": 1, "kv_heads": 1},
    {"heads": 6, "kv_heads": 2},
    {"heads": 6, "kv_heads": 1, "queries": 66, "keys": 66},
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", ["", "bool", "added", "shared"])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_masks(device: Device, dtype: str, mask: str, causal: bool) -> None:
    check_forward(device, Problem(dtype, mask=mask, causal=causal))
    check_backward(device, Problem(dtype, mask=mask, causal=causal))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_layouts(device: Device, dtype: str, place: layouts.Placer) -> None:
    check_forward(device, Problem(dtype, place=place))
    check_backward(device, Problem(dtype, place=place))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_sizes(device: Device, dtype: str, sizes: dict[str, int], causal: bool) -> None:
    check_forward(device, Problem(dtype, causal=causal, **sizes))
    check_backward(device, Problem(dtype, causal=causal, **sizes))


@pytest.mark.full
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_long_sequences(device: Device, dtype: str) -> None:
    sizes = {"batch": 1, "heads": 2, "kv_heads": 1, "queries": 1100, "keys": 1030, "width": 64}
    check_forward(device, Problem(dtype, causal=True, mask="bool", **sizes))
    check_backward(device, Problem(dtype, causal=True, mask="added", **sizes))


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_a_query_that_sees_no_key_gives_0(device: Device, dtype: str) -> None:
    for mask in ("bool", "added"):
        run = check_forward(device, Problem(dtype, mask=mask))
        assert not run.out.read()[:, :, 1].any()
        assert (run.logsumexp.read()[:, :, 1] == np.inf).all()


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_dropout_is_that_of_bernoulli(device: Device, dtype: str) -> None:
    if device.support.random != "philox":
        pytest.skip('support.toml: random = "own"')
    for causal in (False, True):
        check_forward(device, Problem(dtype, dropout=0.3, causal=causal))
        check_backward(device, Problem(dtype, dropout=0.3, causal=causal))


@pytest.mark.parametrize("mask", ["bool", "added"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_gradient_of_the_mask(device: Device, dtype: str, causal: bool, mask: str) -> None:
    check_backward(device, Problem(dtype, mask=mask, causal=causal), with_mask_gradient=True)
