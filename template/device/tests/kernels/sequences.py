"""The oracle of attention, and packed and paged sequences for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernels import layouts, oracle, tolerances
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

Values = NDArray[Any]
SCALE = 0.4


def sequence_first(shape: tuple[int, ...]) -> layouts.Placement:
    """(batch, rows, heads, width) in memory, as a projection writes it."""
    _, heads, rows, width = shape
    strides = (heads * rows * width, width, heads * width, 1)
    return layouts.Placement.of(shape, strides)


def allowed(case: Case, terms: int, scale: Values, expected: Values) -> Values:
    """The errors of sums of `terms` products of the magnitude of `scale`."""
    # The errors of the exponents have the magnitude of the scores, which is below 16.
    bound = tolerances.error_of_sum(case.dtype, 2 * terms + 64, scale)
    return np.asarray(bound + tolerances.spacing(expected, DTYPES[case.dtype]))


def check_out(
    device: Device,
    case: Case,
    out: Array,
    logsumexp: Array,
    attended: Sequence[Attended],
    join: Callable[[list[Values]], Values],
    terms: int = 0,
) -> None:
    """Compares the results with those of the oracle, which `join` puts together."""
    right, logarithms, size = (
        join([getattr(one, name) for one in attended]) for name in ("out", "logarithms", "size")
    )
    terms = terms or 2 * out.shape[3] + 200
    device.assert_within(case, out.read(), right, allowed(case, terms, size, right), False)
    finite = np.where(np.isfinite(logarithms), np.abs(logarithms), 0)
    bound = tolerances.error_of_sum(case.dtype, terms + 64, finite + 4)
    device.assert_within(case, logsumexp.read(), logarithms, bound)


@dataclass(frozen=True)
class Options:
    """The fields of the descriptor other than arrays. `op` is the name in support.toml."""

    op: str
    causal: str = "none"
    window: tuple[int, int] = (-1, -1)
    soft_cap: float = 0.0
    sinks: bool = False
    slopes: bool = False


@dataclass
class Attended:
    """(..., heads, queries, keys) and (..., heads, queries, value width)."""

    p: Values
    derivative: Values
    out: Values
    size: Values  # the magnitude of the terms of out
    logarithms: Values

    def gradient_of_scores(
        self, gradient: Values, out: Values, v: Values, factor: Values | float = 1
    ) -> tuple[Values, Values]:
        """The gradient, and the magnitude of its terms. `factor` is that of dropout."""
        share = gradient * out
        products = gradient @ v.swapaxes(-1, -2) * factor
        result = self.p * (products - share.sum(-1, keepdims=True)) * self.derivative
        size = np.abs(gradient) @ np.abs(v).swapaxes(-1, -2) * factor
        return result, self.p * (size + np.abs(share).sum(-1, keepdims=True))


def attend(
    q: Values,
    k: Values,
    v: Values,
    options: Options,
    sinks: Values | None = None,
    slopes: Values | None = None,
    mask: Values | None = None,
    factor: Values | float = 1,
) -> Attended:
    """Attention by its definition, for keys and values that are repeated for their heads.

    `factor` is that of dropout.
    """
    queries, keys = q.shape[-2], k.shape[-2]
    shift = 0 if options.causal == "top_left" else keys - queries
    distance = np.arange(keys)[None, :] - (np.arange(queries)[:, None] + shift)
    scores = SCALE * q @ k.swapaxes(-1, -2)
    derivative = np.ones(scores.shape)
    if options.soft_cap:
        part = np.tanh(scores / options.soft_cap)
        scores, derivative = options.soft_cap * part, 1 - part**2
    if slopes is not None:
        scores = scores - slopes[:, None, None] * np.abs(distance)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    left, right = options.window
    seen = np.ones(distance.shape, bool)
    if options.causal != "none":
        seen &= distance <= 0
    if left >= 0:
        seen &= distance >= -left
    if right >= 0:
        seen &= distance <= right
    scores = np.where(seen, scores, -np.inf)
    if sinks is not None:
        column = np.broadcast_to(sinks[:, None, None], (*scores.shape[:-1], 1))
        scores = np.concatenate([scores, column], -1)
    top = np.maximum(scores.max(-1, keepdims=True, initial=-1e9), -1e9)
    total = np.exp(scores - top).sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        logarithms = np.where(total > 0, top + np.log(total), np.inf)
    p = np.exp(scores - logarithms)[..., :keys]
    dropped = p * factor
    return Attended(p, derivative, dropped @ v, dropped @ np.abs(v), logarithms[..., 0])


def spread(values: Values, heads: int) -> Values:
    """Keys or values, repeated for the heads that share them."""
    return np.repeat(values, heads // values.shape[-3], -3)


def gathered(values: Values, kv_heads: int) -> Values:
    """The sum over the heads that share keys."""
    *batch, heads, rows, width = values.shape
    shared = values.reshape(*batch, kv_heads, heads // kv_heads, rows, width)
    return np.asarray(shared.sum(-3))


class Problem:
    """Sequences of some lengths, with their heads and their random inputs."""

    def __init__(
        self,
        dtype: str,
        lengths: Sequence[tuple[int, int]],
        options: Options,
        heads: tuple[int, int] = (4, 2),
        widths: tuple[int, int] = (6, 3),
    ) -> None:
        self.dtype, self.lengths, self.options = dtype, lengths, options
        self.heads, self.kv_heads = heads
        self.width, self.value_width = widths
        random = rng(dtype, lengths, options, heads, widths)
        self.q, self.k, self.v = [], [], []
        for queries, keys in lengths:
            self.q.append(random.normal(size=(self.heads, queries, self.width)).clip(-2, 2))
            self.k.append(random.normal(size=(self.kv_heads, keys, self.width)).clip(-2, 2))
            self.v.append(random.normal(size=(self.kv_heads, keys, self.value_width)))
        self.sinks = random.normal(size=self.heads) if options.sinks else None
        count = len(lengths)
        self.slopes = random.uniform(0, 0.5, (count, self.heads)) if options.slopes else None

    def spread(self, values: Values) -> Values:
        return spread(values, self.heads)

    def attend(self, number: int, q: Values, k: Values, v: Values) -> Attended:
        slopes = self.slopes[number] if self.slopes is not None else None
        return attend(q, self.spread(k), self.spread(v), self.options, self.sinks, slopes)

    def descriptor(self, device: Device, **fields: Any) -> Any:
        """The descriptor with the arrays of the options, rounded as for the oracle."""
        arrays = {}
        if self.sinks is not None:
            arrays["sinks"] = device.array(self.dtype, self.sinks.shape, values=self.sinks)
            self.sinks = oracle.wide(arrays["sinks"].values)
        if self.slopes is not None:
            arrays["slopes"] = device.array("float32", self.slopes.shape, values=self.slopes)
            self.slopes = oracle.wide(arrays["slopes"].values)
        left, right = self.options.window
        return device.descriptor(
            "AttentionParams",
            scale=SCALE,
            causal=self.options.causal,
            window_left=left,
            window_right=right,
            soft_cap=self.options.soft_cap,
            max_queries=max(queries for queries, _ in self.lengths),
            max_keys=max(keys for _, keys in self.lengths),
            **arrays,
            **fields,
        )


def starts(device: Device, counts: Sequence[int]) -> Array:
    values = np.concatenate([[0], np.cumsum(counts)])
    return device.array("int32", values.shape, values=values)


def joined(rows: list[Values]) -> Values:
    """Packed sequences, as (1, heads, rows, width)."""
    return np.concatenate(rows, 1)[None]


class Ragged:
    """The arrays of one problem with packed sequences."""

    def __init__(self, device: Device, problem: Problem) -> None:
        self.device, self.problem = device, problem
        self.q, self.k, self.v = (
            self.make(joined(rows)) for rows in (problem.q, problem.k, problem.v)
        )
        shape = (*self.q.shape[:3], problem.value_width)
        self.out = device.array(problem.dtype, shape, sequence_first)
        self.logsumexp = device.array(tolerances.accumulator(problem.dtype), shape[:3])
        self.query_starts = starts(device, [queries for queries, _ in problem.lengths])
        self.key_starts = starts(device, [keys for _, keys in problem.lengths])

    def make(self, values: Values) -> Array:
        return self.device.array(self.problem.dtype, values.shape, sequence_first, values)

    def parts(self, array: Array, of_keys: bool) -> list[Values]:
        """The part of each sequence in an array."""
        counts = [lengths[of_keys] for lengths in self.problem.lengths]
        return np.split(oracle.wide(array.values)[0], np.cumsum(counts)[:-1], 1)

    def attended(self) -> list[Attended]:
        parts = zip(
            self.parts(self.q, False),
            self.parts(self.k, True),
            self.parts(self.v, True),
            strict=True,
        )
        return [self.problem.attend(number, *part) for number, part in enumerate(parts)]

    def params(self, **fields: Any) -> Any:
        arrays = {"query_starts": self.query_starts, "key_starts": self.key_starts}
        return self.problem.descriptor(self.device, **arrays, **fields)


class Paged:
    """Keys and values in blocks in random order, some of them unused."""

    def __init__(
        self, device: Device, problem: Problem, cache: str, block_size: int, by_heads: bool
    ) -> None:
        self.device, self.problem = device, problem
        self.place = layouts.contiguous if by_heads else sequence_first
        most = max(-(-keys // block_size) for _, keys in problem.lengths) + 1
        blocks = most * len(problem.lengths) + 2
        order = rng("blocks", blocks).permutation(blocks)
        self.table = np.full((len(problem.lengths), most), -1)
        k = np.full((blocks, problem.kv_heads, block_size, problem.width), np.nan)
        v = np.full((blocks, problem.kv_heads, block_size, problem.value_width), np.nan)
        used = 0
        for number, (_, keys) in enumerate(problem.lengths):
            for first in range(0, keys, block_size):
                block = order[used]
                used += 1
                self.table[number, first // block_size] = block
                rows = slice(first, min(first + block_size, keys))
                count = rows.stop - rows.start
                k[block, :, :count] = problem.k[number][:, rows]
                v[block, :, :count] = problem.v[number][:, rows]
        self.k = device.array(cache, k.shape, self.place, k)
        self.v = device.array(cache, v.shape, self.place, v)

    def rows(self, cache: Array, number: int) -> Values:
        """The rounded keys or values of one sequence."""
        keys = self.problem.lengths[number][1]
        blocks = oracle.wide(cache.values)[self.table[number]].swapaxes(0, 1)
        return np.asarray(blocks.reshape(blocks.shape[0], -1, blocks.shape[3])[:, :keys])

    def arrays(self) -> dict[str, Array]:
        counts = np.array([keys for _, keys in self.problem.lengths])
        return {
            "block_table": self.device.array("int32", self.table.shape, values=self.table),
            "key_counts": self.device.array("int32", counts.shape, values=counts),
        }
