"""Families for serving engines: caches, rotary positions, normalized sums, gates, sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, tolerances
from kernels.element_types import STORED
from kernels.harness import DTYPES, Array, Device, rng
from kernels.philox import philox
from kernels.sequences import sequence_first
from kernels.support import Case
from kernels.unary_oracle import ACTIVATIONS
from numpy.typing import NDArray
from scipy import special  # type: ignore[import-untyped]

Values = NDArray[Any]
FLOAT8 = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


# --- append_to_cache ---


def append(device: Device, case: Case, cache: str, scaled: bool = False) -> None:
    """Appends seven tokens, one of which has no slot. Other slots are unchanged."""
    shape, width = (5, 2, 4), {"k": 6, "v": 3}
    slots = np.array([7, -1, 0, 19, 12, 3, 8])
    arrays: dict[str, Array] = {}
    caches: dict[str, Array] = {}
    scales: dict[str, Array] = {}
    for name in "kv":
        random = rng(case, cache, name)
        tokens = random.normal(size=(len(slots), 2, width[name]), scale=FLOAT8.get(cache, 300.0))
        arrays[name] = device.array(case.dtype, tokens.shape, values=tokens)
        whole = (*shape, width[name])
        caches[name] = device.array(cache, whole, sequence_first, random.normal(size=whole))
        if scaled:
            values = random.uniform(0.5, 2, 2)
            scales[f"{name}_scale"] = device.array("float32", (2,), values=values)
    where = device.array("int64", slots.shape, values=slots)
    params = device.descriptor("CacheParams", **scales)
    results = list(caches.values())
    device.run(case, results, *results, *arrays.values(), where, more=[params])
    for name in "kv":
        expected = oracle.wide(caches[name].values)
        rows = oracle.wide(arrays[name].values)
        if scaled:
            rows = rows / oracle.wide(scales[f"{name}_scale"].values)[:, None]
        if cache in FLOAT8:
            rows = rows.clip(-FLOAT8[cache], FLOAT8[cache])
        for row, slot in zip(rows, slots, strict=True):
            if slot >= 0:
                expected[slot // 4, :, slot % 4] = row
        got = caches[name].read().astype(np.float64)
        # A quotient is rounded twice, so its last digit may differ by one.
        unit = 2.0 ** -{"float8_e4m3fn": 3, "float8_e5m2": 2}.get(cache, 7)
        bound = np.abs(expected) * (unit if scaled else 0) + 1e-3 * scaled
        rounded = expected.astype(STORED[cache]).astype(np.float64)
        assert (np.abs(got - rounded) <= bound).all()


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_tokens_are_written_to_their_slots(device: Device, dtype: str) -> None:
    append(device, Case("append_to_cache", "-", dtype, "contiguous"), dtype)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("cache", FLOAT8)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_float8_caches(device: Device, dtype: str, cache: str, scaled: bool) -> None:
    op = "float8_scaled" if scaled else "float8"
    append(device, Case("append_to_cache", op, dtype), cache, scaled)


def test_a_slot_out_of_range_is_reported(device: Device) -> None:
    cache = device.array("float32", (2, 1, 4, 3), values=np.zeros((2, 1, 4, 3)))
    other = device.array("float32", (2, 1, 4, 3), values=np.zeros((2, 1, 4, 3)))
    tokens = device.array("float32", (1, 1, 3), values=np.ones((1, 1, 3)))
    slots = device.array("int64", (1,), values=np.array([8]))
    case = Case("append_to_cache", "-", "float32", "contiguous")
    message = "slot 8 is out of range for a cache of 8 slots"
    params = device.descriptor("CacheParams")
    device.run_invalid(case, message, cache, other, tokens, tokens, slots, more=[params])


# --- rotary ---


def turned(op: str, values: Values, angles: Values, inverse: bool) -> Values:
    """`angles` has the shape (tokens, points)."""
    points = angles.shape[1]
    out = values.copy()
    pairs = slice(0, 2 * points, 2), slice(1, 2 * points, 2)
    x, y = (slice(0, points), slice(points, 2 * points)) if op == "halves" else pairs
    cosines, sines = np.cos(angles)[:, None], np.sin(angles)[:, None] * (-1 if inverse else 1)
    out[..., x] = values[..., x] * cosines - values[..., y] * sines
    out[..., y] = values[..., y] * cosines + values[..., x] * sines
    return out


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(("width", "rotated"), [(8, 8), (8, 4), (8, 0), (7, 6)])
@pytest.mark.parametrize("op", ["halves", "pairs"])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_rotary(
    device: Device, dtype: str, op: str, width: int, rotated: int, inverse: bool, in_place: bool
) -> None:
    case = Case("rotary", op, dtype, "contiguous")
    random = rng(case, width, rotated)
    positions = np.array([3, 0, 11, 3, 7])
    angles = random.uniform(0, 7, (12, rotated // 2))
    table = np.concatenate([np.cos(angles), np.sin(angles)], 1)
    values = random.normal(size=(5, 3, width))
    for table_type in {dtype, tolerances.accumulator(dtype)}:
        numbers = device.array(table_type, table.shape, values=table)
        where = device.array("int64", positions.shape, values=positions)
        given = device.array(dtype, values.shape, values=values)
        out = given if in_place else device.array(dtype, values.shape)
        arguments = (given, where, numbers)
        device.run(case, [out], device.api.RotaryOp[op], out, *arguments, more=[inverse])
        expected = turned(op, oracle.wide(given.values), angles[positions], inverse)
        unit = tolerances.unit_roundoff(DTYPES[table_type])
        bound = 8 * unit + tolerances.spacing(expected, DTYPES[dtype])
        device.assert_within(case, out.read(), expected, 4 * bound, signed_zeros=False)


@pytest.mark.parametrize("position", [-1, 4])
def test_a_position_out_of_range_is_reported(device: Device, position: int) -> None:
    case = Case("rotary", "halves", "float32", "contiguous")
    out = device.array("float32", (1, 1, 4), values=np.zeros((1, 1, 4)))
    where = device.array("int64", (1,), values=np.array([position]))
    table = device.array("float32", (4, 4), values=np.zeros((4, 4)))
    message = f"position {position} is out of range for a table of 4 positions"
    code = device.api.RotaryOp.halves
    device.run_invalid(case, message, code, out, out, where, table, more=[False])


# --- add_rms_norm ---


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (2, 3, 1100), (7,)])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_add_rms_norm(device: Device, dtype: str, shape: tuple[int, ...], in_place: bool) -> None:
    case = Case("add_rms_norm", "-", dtype, "contiguous")
    random = rng(case, shape)
    given = device.array(dtype, shape, values=random.normal(size=shape))
    residual = device.array(dtype, shape, values=random.normal(size=shape))
    for weight_type in {dtype, tolerances.accumulator(dtype)}:
        weight = device.array(weight_type, shape[-1:], values=random.normal(size=shape[-1:]))
        given.upload()
        out = given if in_place else device.array(dtype, shape)
        residual.upload()
        total = oracle.wide(given.values) + oracle.wide(residual.values)
        device.run(case, [out, residual], out, residual, given, weight, more=[1e-5])
        rounded = total.astype(residual.storage.dtype)
        spacing = tolerances.spacing(total, DTYPES[dtype])
        device.assert_within(case, residual.read(), total, spacing, signed_zeros=False)
        wide = oracle.wide(rounded)
        mean = (wide**2).mean(-1, keepdims=True)
        expected = wide / np.sqrt(mean + 1e-5) * oracle.wide(weight.values)
        bound = tolerances.error_of_sum(dtype, 32, np.abs(expected))
        bound = bound + 2 * tolerances.spacing(expected, DTYPES[dtype])
        device.assert_within(case, out.read(), expected, bound, signed_zeros=False)


# --- gated ---


def halves(device: Device, dtype: str, values: Values) -> tuple[Any, Any, Array]:
    """The views of the two halves of rows."""
    whole = device.array(dtype, values.shape, values=values)
    width = values.shape[1] // 2
    size = whole.storage.itemsize
    views = [
        whole.buffer.view(
            i * width * size, device.api.DType[dtype], [len(values), width], [2 * width, 1]
        )
        for i in (0, 1)
    ]
    return views[0], views[1], whole


@pytest.mark.parametrize("activation", ["none", *ACTIVATIONS])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_halves_of_rows(device: Device, dtype: str, activation: str) -> None:
    case = Case("gated", activation, dtype, "halves")
    values = rng(case).normal(size=(5, 14), scale=2)
    gate, up, whole = halves(device, dtype, values)
    out = device.array(dtype, (5, 7))
    device.run(case, [out], device.api.Activation[activation], out, gate, up)
    left, right = np.split(oracle.wide(whole.values), 2, 1)
    expected = (left if activation == "none" else ACTIVATIONS[activation](left)) * right
    bound = tolerances.error_of_sum(dtype, 16, np.abs(left * right))
    bound = bound + tolerances.spacing(expected, DTYPES[dtype])
    device.assert_within(case, out.read(), expected, bound, signed_zeros=False)


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_gated(device: Device, dtype: str) -> None:
    case = Case("gated", "relu", dtype, "contiguous")
    for shape in ((3, 4, 11), (3, 4, 1100)):
        gate, up = (device.integers(dtype, shape, layouts.contiguous, x) for x in ("gate", "up"))
        out = device.array(dtype, shape)
        device.run(case, [out], device.api.Activation.relu, out, gate, up)
        expected = np.maximum(oracle.wide(gate.values), 0) * oracle.wide(up.values)
        device.assert_within(case, out.read(), expected, 0, signed_zeros=False)


# --- sample ---

ROWS, TOKENS = 6, 50


def logits_of(device: Device, dtype: str) -> Array:
    values = rng("logits", dtype).normal(size=(ROWS, TOKENS), scale=2)
    values[0, 7] = -np.inf
    return device.array(dtype, values.shape, values=values)


def kept(
    logits: Values, temperature: float, min_p: float, top_k: int, top_p: float
) -> NDArray[np.bool_]:
    """The tokens of a row that may be drawn."""
    weights = np.exp((logits - logits.max()) / temperature)
    stay = weights >= min_p
    if top_k >= 1:
        stay &= weights >= np.sort(np.where(stay, weights, -1))[-min(top_k, len(weights))]
    order = np.argsort(-np.where(stay, weights, 0), kind="stable")
    sums = np.cumsum(np.where(stay, weights, 0)[order])
    before = np.concatenate([[0], sums[:-1]])
    few = np.zeros(len(weights), bool)
    few[order[(before < top_p * sums[-1]) | (np.arange(len(order)) == 0)]] = True
    return np.asarray(stay & few) if top_p < 1 else np.asarray(stay)


def scores_of(logits: Values, temperature: float, row: int, seed: int, offset: int) -> Values:
    """The logarithmic scores, the largest of which determines the token."""
    lanes = philox(seed, offset, ROWS * TOKENS // 4 + 1).reshape(-1)
    lanes = lanes[row * TOKENS : (row + 1) * TOKENS]
    drawn = -np.log1p(-(((lanes >> np.uint64(9)).astype(np.float64) + 0.5) / 2**23))
    return np.asarray(logits / temperature - np.log(drawn))


RESTRICTIONS: dict[str, dict[str, float]] = {
    "all": {},
    "temperature": {"temperature": 0.7},
    "top_k": {"top_k": 5},
    "top_p": {"top_p": 0.6},
    "min_p": {"min_p": 0.2},
    "top_1": {"top_k": 1, "top_p": 0.0},
    "together": {"temperature": 1.3, "top_k": 12, "top_p": 0.8, "min_p": 0.01},
    "wide": {"top_k": 400, "top_p": 1.0, "min_p": 0.0},
}


def sample(device: Device, case: Case, logits: Array, seed: int, **restrictions: float) -> Array:
    arrays = {}
    for name, number in restrictions.items():
        dtype = "int32" if name == "top_k" else "float32"
        arrays[name] = device.array(dtype, (ROWS,), values=np.full(ROWS, number))
    out = device.array("int64", (ROWS,))
    params = device.descriptor("SampleParams", philox=device.api.PhiloxState(seed, 5), **arrays)
    device.run(case, [out], out, logits, more=[params])
    return out


@pytest.mark.parametrize("op", RESTRICTIONS)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_the_drawn_token_is_the_greatest(philox_device: Device, dtype: str, op: str) -> None:
    case = Case("sample", op, dtype)
    logits = logits_of(philox_device, dtype)
    given = RESTRICTIONS[op]
    numbers = {"temperature": 1.0, "min_p": 0.0, "top_k": 0, "top_p": 1.0} | given
    numbers = {name: float(np.float32(number)) for name, number in numbers.items()}
    top_k = int(numbers.pop("top_k"))
    for seed in range(20):
        tokens = sample(philox_device, case, logits, seed, **given).read()
        for row, token in enumerate(tokens):
            values = oracle.wide(logits.values)[row]
            stay = kept(values, top_k=top_k, **numbers)
            scores = scores_of(values, numbers["temperature"], row, seed, 5)
            best = np.where(stay, scores, -np.inf).max()
            assert stay[token], f"token {token} of row {row} must not be drawn"
            assert scores[token] >= best - 1e-4


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_a_temperature_of_0_selects_the_greatest_logit(device: Device, dtype: str) -> None:
    case = Case("sample", "greedy", dtype)
    values = rng("greedy").integers(-9, 9, (ROWS, TOKENS)).astype(np.float64)
    logits = device.array(dtype, values.shape, values=values)
    tokens = sample(device, case, logits, 1, temperature=0.0, top_p=0.1)
    device.assert_exact(case, tokens, values.argmax(1))


def test_tokens_are_drawn_with_their_probabilities(device: Device) -> None:
    case = Case("sample", "all", "float32")
    row = rng("row").normal(size=TOKENS)
    logits = device.array("float32", (ROWS, TOKENS), values=np.broadcast_to(row, (ROWS, TOKENS)))
    seen = np.zeros(TOKENS)
    device.modes = device.modes[:1]
    try:
        for seed in range(400):
            np.add.at(seen, sample(device, case, logits, seed).read(), 1)
    finally:
        device.modes = ("free", "deterministic")
    expected = special.softmax(row) * 400 * ROWS
    assert ((seen - expected) ** 2 / expected).sum() < 110  # 49 degrees of freedom: 1 in 10^6
