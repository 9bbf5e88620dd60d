"""Attention with windows, soft caps, sinks, slopes, packed sequences and paged caches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels import oracle, tolerances
from kernels.harness import Device, rng
from kernels.sequences import (
    SCALE,
    Attended,
    Options,
    Paged,
    Problem,
    Ragged,
    Values,
    allowed,
    check_out,
    gathered,
    joined,
    sequence_first,
)
from kernels.support import Case

FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


OPTIONS = [
    Options("bottom_right", "bottom_right"),
    Options("window", "bottom_right", (3, -1)),
    Options("window", "top_left", (2, 0)),
    Options("window", "none", (1, 2)),
    Options("window", "none", (0, -1)),
    Options("soft_cap", "none", soft_cap=0.7),
    Options("soft_cap", "bottom_right", soft_cap=3.0),
    Options("sinks", "none", sinks=True),
    Options("sinks", "bottom_right", (2, 1), sinks=True),
    Options("slopes", "bottom_right", slopes=True),
    Options("slopes", "none", slopes=True),
    Options("slopes", "top_left", (4, 0), 2.0, sinks=True, slopes=True),
]


def check_ragged(device: Device, problem: Problem, op: str) -> None:
    run = Ragged(device, problem)
    case = Case("attention", op, problem.dtype)
    params = run.params()
    device.run(case, [run.out, run.logsumexp], run.out, run.logsumexp, run.q, run.k, run.v, params)
    attended = run.attended()
    check_out(device, case, run.out, run.logsumexp, attended, joined)
    check_gradients(device, run, attended, op)


def check_gradients(device: Device, run: Ragged, attended: list[Attended], op: str) -> None:
    problem = run.problem
    case = Case("attention_backward", op, problem.dtype)
    run.out.set(joined([one.out for one in attended]).astype(run.out.storage.dtype))
    logarithms = joined([one.logarithms for one in attended])
    run.logsumexp.set(logarithms.astype(run.logsumexp.storage.dtype))
    gradient = run.make(rng("gradient", run.out.shape).normal(size=run.out.shape))
    results = [
        device.array(problem.dtype, array.shape, sequence_first) for array in (run.q, run.k, run.v)
    ]
    params = run.params(out=run.out, logsumexp=run.logsumexp)
    device.run(case, results, *results, gradient, run.q, run.k, run.v, params)
    expected: list[list[Values]] = [[], [], []]
    sizes: list[list[Values]] = [[], [], []]
    q, k, v = run.parts(run.q, False), run.parts(run.k, True), run.parts(run.v, True)
    outs, gradients = run.parts(run.out, False), run.parts(gradient, False)
    for i, one in enumerate(attended):
        keys, values = problem.spread(k[i]), problem.spread(v[i])
        of_scores, size = one.gradient_of_scores(gradients[i], outs[i], values)
        for to, s, p, a in (
            (expected, of_scores, one.p, lambda x: x),
            (sizes, size, one.p, np.abs),
        ):
            to[0].append(SCALE * s @ a(keys))
            to[1].append(gathered(SCALE * s.swapaxes(1, 2) @ a(q[i]), problem.kv_heads))
            to[2].append(gathered(p.swapaxes(1, 2) @ a(gradients[i]), problem.kv_heads))
    for array, right, size_of in zip(results, expected, sizes, strict=True):
        bound = allowed(case, 500, joined(size_of), joined(right))
        device.assert_within(case, array.read(), joined(right), bound, False)


LENGTHS = [(5, 7), (1, 9), (0, 4), (3, 0), (70, 66), (6, 2)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_masks_of_dense_sequences(device: Device, dtype: str, options: Options) -> None:
    """Dense arrays, which are sequences of one length."""
    for lengths in ((5, 7), (7, 5), (70, 70)):
        problem = Problem(dtype, [lengths] * 2, options)
        run = Ragged(device, problem)
        q, k, v = (np.stack(rows) for rows in (problem.q, problem.k, problem.v))
        arrays = [device.array(dtype, values.shape, sequence_first, values) for values in (q, k, v)]
        shape = (*q.shape[:3], problem.value_width)
        out = device.array(dtype, shape, sequence_first)
        logsumexp = device.array(tolerances.accumulator(dtype), shape[:3])
        case = Case("attention", options.op, dtype, "dense")
        params = problem.descriptor(device)
        device.run(case, [out, logsumexp], out, logsumexp, *arrays, params)
        check_out(device, case, out, logsumexp, run.attended(), np.stack)


@pytest.mark.parametrize("options", [Options("-"), Options("-", "top_left"), *OPTIONS], ids=str)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_ragged_sequences(device: Device, dtype: str, options: Options) -> None:
    op = "ragged" if options.op == "-" else f"ragged_{options.op}"
    check_ragged(device, Problem(dtype, LENGTHS, options), op)


def check_paged(
    device: Device,
    problem: Problem,
    op: str,
    cache: str = "",
    block_size: int = 4,
    by_heads: bool = False,
    scaled: bool = False,
) -> None:
    dtype = problem.dtype
    paged = Paged(device, problem, cache or dtype, block_size, by_heads)
    ragged = Ragged(device, replace_keys(problem))
    fields: dict[str, Any] = paged.arrays()
    count = len(problem.lengths)
    factors = [np.ones((count, problem.kv_heads))] * 2
    if scaled:
        factors = [rng(name).uniform(0.5, 2, (count, problem.kv_heads)) for name in "kv"]
        for name, values in zip(("k_scale", "v_scale"), factors, strict=True):
            fields[name] = device.array("float32", values.shape, values=values)
        factors = [oracle.wide(fields[name].values) for name in ("k_scale", "v_scale")]
    params = problem.descriptor(device, query_starts=ragged.query_starts, **fields)
    case = Case("attention", op, dtype, "by_heads" if by_heads else "by_rows")
    outs = [ragged.out, ragged.logsumexp]
    device.run(case, outs, *outs, ragged.q, paged.k, paged.v, params)
    attended = []
    for number, q in enumerate(ragged.parts(ragged.q, False)):
        k, v = (
            paged.rows(array, number) * factor[number][:, None, None]
            for array, factor in zip((paged.k, paged.v), factors, strict=True)
        )
        attended.append(problem.attend(number, q, k, v))
    check_out(device, case, ragged.out, ragged.logsumexp, attended, joined)


def replace_keys(problem: Problem) -> Problem:
    """The same queries, with other keys, which are not used."""
    lengths = [(queries, max(keys, 1)) for queries, keys in problem.lengths]
    other = Problem(problem.dtype, lengths, replace(problem.options, sinks=False, slopes=False))
    other.q, other.heads, other.value_width = problem.q, problem.heads, problem.value_width
    return other


@pytest.mark.parametrize("by_heads", [False, True])
@pytest.mark.parametrize("block_size", [1, 4, 16])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_paged_caches(device: Device, dtype: str, block_size: int, by_heads: bool) -> None:
    problem = Problem(dtype, LENGTHS, Options("paged", "bottom_right"))
    check_paged(device, problem, "paged", block_size=block_size, by_heads=by_heads)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_masks_of_paged_caches(device: Device, dtype: str, options: Options) -> None:
    check_paged(device, Problem(dtype, LENGTHS, options), f"paged_{options.op}")


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_decoding(device: Device, dtype: str) -> None:
    """One query for each sequence, with the head sizes of some models."""
    lengths = [(1, keys) for keys in (1, 130, 33, 16)]
    check_paged(device, Problem(dtype, lengths, Options("paged")), "paged", block_size=16)
    latent = Problem(dtype, lengths, Options("paged"), heads=(8, 1), widths=(72, 64))
    check_paged(device, latent, "paged", block_size=16)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("cache", FLOAT8)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_float8_caches(device: Device, dtype: str, cache: str, scaled: bool) -> None:
    problem = Problem(dtype, LENGTHS, Options("paged_float8", "bottom_right"))
    op = "paged_float8_scaled" if scaled else "paged_float8"
    check_paged(device, problem, op, cache=cache, scaled=scaled)


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_key_counts_of_dense_caches(device: Device, dtype: str) -> None:
    """A dense cache with a different number of keys for each sequence."""
    lengths, room = [(1, 9), (1, 3), (1, 12), (1, 0)], 12
    problem = Problem(dtype, lengths, Options("counts"))
    caches = []
    for rows in (problem.k, problem.v):
        values = np.full((len(lengths), 2, room, rows[0].shape[2]), np.nan)
        for number, (_, keys) in enumerate(lengths):
            values[number, :, :keys] = rows[number]
        caches.append(device.array(dtype, values.shape, sequence_first, values))
    q = device.array(dtype, (4, 4, 1, problem.width), values=np.stack(problem.q))
    out = device.array(dtype, (4, 4, 1, problem.value_width))
    logsumexp = device.array(tolerances.accumulator(dtype), (4, 4, 1))
    counts = device.array("int32", (4,), values=np.array([keys for _, keys in lengths]))
    case = Case("attention", "counts", dtype, "dense")
    params = problem.descriptor(device, key_counts=counts)
    device.run(case, [out, logsumexp], out, logsumexp, q, *caches, params)
    attended = []
    for number, (_, keys) in enumerate(lengths):
        k, v = (oracle.wide(cache.values)[number, :, :keys] for cache in caches)
        attended.append(problem.attend(number, oracle.wide(q.values)[number], k, v))
    check_out(device, case, out, logsumexp, attended, np.stack)


@pytest.mark.parametrize(
    ("queries", "keys", "message"),
    [
        ([0, 4, 2, 8], [0, 2, 4, 8], "starts of sequences must ascend from 0 and be at most 8"),
        ([0, 2, 4, 9], [0, 2, 4, 8], "but 9 follows 4"),
        ([0, 2, 4, 8], [0, 2, -4, 8], "but -4 follows 2"),
    ],
)
def test_wrong_starts_are_reported(
    device: Device, queries: list[int], keys: list[int], message: str
) -> None:
    problem = Problem("float32", [(4, 4), (2, 2), (2, 2)], Options("ragged"))
    run = Ragged(device, problem)
    wrong = [device.array("int32", (4,), values=np.array(given)) for given in (queries, keys)]
    params = problem.descriptor(device, query_starts=wrong[0], key_starts=wrong[1])
    case = Case("attention", "ragged", "float32")
    device.run_invalid(case, message, run.out, run.logsumexp, run.q, run.k, run.v, params)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("block_table", 99, "block 99 is out of range: the cache has 11 blocks"),
        ("block_table", -1, "block -1 is out of range"),
        ("key_counts", 13, "key count 13 is out of range: the maximum is 12"),
        ("key_counts", -1, "key count -1 is out of range"),
    ],
)
def test_wrong_caches_are_reported(device: Device, name: str, value: int, message: str) -> None:
    problem = Problem("float32", [(2, 5), (1, 4), (1, 8)], Options("paged"))
    paged = Paged(device, problem, "float32", 4, by_heads=False)
    ragged = Ragged(device, problem)
    arrays = paged.arrays()
    values = arrays[name].values
    values.flat[0] = value
    arrays[name].set(values)
    params = problem.descriptor(device, query_starts=ragged.query_starts, **arrays)
    case = Case("attention", "paged", "float32")
    given = (ragged.out, ragged.logsumexp, ragged.q, paged.k, paged.v)
    device.run_invalid(case, message, *given, params)
