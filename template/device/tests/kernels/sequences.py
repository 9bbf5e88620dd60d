"""Packed and paged sequences for attention, and the oracle's results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernels import layouts, oracle
from kernels.harness import Array, Device, rng
from kernels.test_attention import sequence_first
from numpy.typing import NDArray

Values = NDArray[Any]
SCALE = 0.4


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
    """One sequence: (heads, queries, keys) and (heads, queries, value width)."""

    p: Values
    derivative: Values
    out: Values
    logarithms: Values


def attend(
    q: Values, k: Values, v: Values, options: Options, sinks: Values | None, slopes: Values | None
) -> Attended:
    """Attention by its definition, for keys and values that are repeated for their heads."""
    queries, keys = q.shape[1], k.shape[1]
    shift = 0 if options.causal == "top_left" else keys - queries
    distance = np.arange(keys)[None, :] - (np.arange(queries)[:, None] + shift)
    scores = SCALE * q @ k.swapaxes(1, 2)
    derivative = np.ones(scores.shape)
    if options.soft_cap:
        part = np.tanh(scores / options.soft_cap)
        scores, derivative = options.soft_cap * part, 1 - part**2
    if slopes is not None:
        scores = scores - slopes[:, None, None] * np.abs(distance)
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
        column = np.broadcast_to(sinks[:, None, None], (*scores.shape[:2], 1))
        scores = np.concatenate([scores, column], 2)
    top = np.maximum(scores.max(2, keepdims=True, initial=-1e9), -1e9)
    total = np.exp(scores - top).sum(2, keepdims=True)
    with np.errstate(divide="ignore"):
        logarithms = np.where(total > 0, top + np.log(total), np.inf)
    p = np.exp(scores - logarithms)[:, :, :keys]
    return Attended(p, derivative, p @ v, logarithms[..., 0])


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
        return np.repeat(values, self.heads // self.kv_heads, 0)

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


def wide_type(dtype: str) -> str:
    return "float64" if dtype == "float64" else "float32"


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
        self.logsumexp = device.array(wide_type(problem.dtype), shape[:3])
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
