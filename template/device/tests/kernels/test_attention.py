"""out = softmax(scale * q @ k^T + mask) @ v, and its gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, sequences, tolerances
from kernels.harness import DTYPES, Array, Device, rng
from kernels.philox import philox
from kernels.sequences import SCALE, Attended, sequence_first
from kernels.support import Case
from numpy.typing import NDArray


def packed(shape: tuple[int, ...]) -> layouts.Placement:
    """As sequence_first, between two more arrays of the same size."""
    _, heads, rows, width = shape
    strides = (3 * heads * rows * width, width, 3 * heads * width, 1)
    return layouts.Placement.of(shape, strides, offset=heads * width)


PLACES = [layouts.contiguous, layouts.transposed, layouts.stepped, sequence_first, packed]


@dataclass
class Problem:
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
    def causal_name(self) -> str:
        return "top_left" if self.causal else "none"

    def params(self, device: Device, **arrays: Array | None) -> Any:
        return device.descriptor(
            "AttentionParams",
            scale=SCALE,
            causal=self.causal_name,
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
        self.logsumexp = device.array(tolerances.accumulator(problem.dtype), problem.scores[:3])
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

    def expected(self) -> tuple[Attended, NDArray[Any]]:
        """The results, and the factors of dropout."""
        problem = self.problem
        q, k, v = (oracle.wide(array.values) for array in self.inputs)
        k, v = (sequences.spread(values, problem.heads) for values in (k, v))
        kept = 1 - problem.dropout
        factor = np.ones(problem.scores)
        if problem.dropout:
            lanes = philox(7, 0, factor.size // 4 + 1).reshape(-1)[: factor.size]
            factor = (lanes.reshape(problem.scores) / 2.0**32 < kept) / kept
        options = sequences.Options("-", problem.causal_name)
        mask = self.mask.values if self.mask is not None else None
        return sequences.attend(q, k, v, options, mask=mask, factor=factor), factor


def shared(shape: tuple[int, ...]) -> layouts.Placement:
    """One mask for all heads."""
    return layouts.Placement.of(shape, (0, 0, shape[3], 1))


def check_forward(device: Device, problem: Problem) -> Run:
    run = Run(device, problem)
    case = problem.case
    arrays = (run.out, run.logsumexp, *run.inputs)
    device.run(case, arrays[:2], *arrays, problem.params(device, mask=run.mask))
    attended, _ = run.expected()
    terms = problem.keys + problem.width
    sequences.check_out(
        device, case, run.out, run.logsumexp, [attended], lambda rows: rows[0], terms
    )
    return run


def check_backward(device: Device, problem: Problem, with_mask_gradient: bool = False) -> None:
    run = Run(device, problem)
    problem.name = "attention_backward"
    case = problem.case
    attended, factor = run.expected()
    p = attended.p
    q, k, v = (oracle.wide(array.values) for array in run.inputs)
    k, v = sequences.spread(k, problem.heads), sequences.spread(v, problem.heads)
    run.out.set(attended.out.astype(run.out.storage.dtype))
    run.logsumexp.set(attended.logarithms.astype(run.logsumexp.storage.dtype))
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
    of_scores, size = attended.gradient_of_scores(gradient, out, v, factor)
    # A device may calculate its sum with `out` before it was rounded.
    rounded = (np.abs(gradient) * tolerances.spacing(out, DTYPES[case.dtype])).sum(3, keepdims=True)
    rounded = p * rounded / 2
    dropped = p * factor

    def of_keys(values: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
        return sequences.gathered(values.swapaxes(2, 3) @ rows, problem.kv_heads)

    # The expected result, the magnitude of its terms, and the error from the rounding of `out`.
    results = [
        (SCALE * of_scores @ k, SCALE * size @ np.abs(k), SCALE * rounded @ np.abs(k)),
        (
            of_keys(SCALE * of_scores, q),
            of_keys(size, np.abs(q)),
            of_keys(SCALE * rounded, np.abs(q)),
        ),
        (of_keys(dropped, gradient), of_keys(dropped, np.abs(gradient)), 0),
        (of_scores, size, rounded),
    ]
    terms = problem.keys + problem.queries + problem.width + problem.value_width
    for array, (right, sizes, more) in zip(outputs, results, strict=True):
        if array is None:
            continue
        bound = sequences.allowed(case, terms, sizes, right) + more
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
def test_a_query_without_keys_gives_0(device: Device, dtype: str) -> None:
    for mask in ("bool", "added"):
        run = check_forward(device, Problem(dtype, mask=mask))
        assert not run.out.read()[:, :, 1].any()
        assert (run.logsumexp.read()[:, :, 1] == np.inf).all()


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_dropout_is_that_of_bernoulli(philox_device: Device, dtype: str) -> None:
    for causal in (False, True):
        check_forward(philox_device, Problem(dtype, dropout=0.3, causal=causal))
        check_backward(philox_device, Problem(dtype, dropout=0.3, causal=causal))


@pytest.mark.parametrize("mask", ["bool", "added"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_gradient_of_the_mask(device: Device, dtype: str, causal: bool, mask: str) -> None:
    check_backward(device, Problem(dtype, mask=mask, causal=causal), with_mask_gradient=True)
