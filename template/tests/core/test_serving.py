"""The operators that serving engines call: the device's kernels against plain PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from changed_device import changed_device
from serving_samples import BLOCKS, HEADS, KEYS, QUERIES, SIZE, SLOTS, cached, table, tokens
from support import (
    FLOATING,
    needs,
    needs_two_devices,
    reports_errors,
    run_python,
    sample,
    supported,
)

serving: Any = importlib.import_module(f"{backend.__name__}.serving")

pytestmark = [needs(torch.float32, torch.int32, torch.int64)]
native = pytest.mark.usefixtures("everything_is_native")

TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-12}


def assert_close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    tolerance = TOLERANCE[expected.dtype]
    assert actual.device.type == DEVICE
    torch.testing.assert_close(actual.cpu(), expected, rtol=tolerance, atol=tolerance)


FLOAT8 = [
    dtype
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2)
    if backend.dtype_support(dtype) != "unsupported"
]


def on_device(*tensors: torch.Tensor | None) -> list[torch.Tensor | None]:
    return [None if tensor is None else tensor.clone().to(DEVICE) for tensor in tensors]


# --- reshape_and_cache ---


@native
@pytest.mark.parametrize("dtype", supported(FLOATING))
def test_tokens_are_written_to_their_slots(dtype: torch.dtype) -> None:
    """There can be more tokens than slots, because engines pad their batches."""
    expected, actual = tokens(dtype), on_device(*tokens(dtype))
    serving.reshape_and_cache(*expected, SLOTS)
    serving.reshape_and_cache(*actual, SLOTS.to(DEVICE))
    for one, other in zip(actual[2:], expected[2:], strict=True):
        assert torch.equal(one.cpu(), other)
    plain = tokens(dtype)
    plain[2][1, 1], plain[2][10, 0], plain[2][0, 0], plain[2][11, 3] = plain[0][[0, 2, 3, 4]]
    assert torch.equal(expected[2], plain[2])


def test_an_unsupported_cache_is_filled_by_the_cpu() -> None:
    given = [(10 * tensor).int() for tensor in tokens(torch.float32)]
    expected, actual = [tensor.clone() for tensor in given], on_device(*given)
    serving.reshape_and_cache(*expected, SLOTS)
    with backend.count_fallbacks() as counted:
        serving.reshape_and_cache(*actual, SLOTS.to(DEVICE))
    assert list(counted) == [f"{DEVICE}::reshape_and_cache"]
    for one, other in zip(actual[2:], expected[2:], strict=True):
        assert torch.equal(one.cpu(), other)


def test_wrong_arguments_of_reshape_and_cache() -> None:
    key, value, key_cache, value_cache = on_device(*tokens(torch.float32))
    slots = SLOTS.to(DEVICE)
    with pytest.raises(RuntimeError, match="do not fit the caches"):
        serving.reshape_and_cache(key[..., :4], value, key_cache, value_cache, slots)
    with pytest.raises(RuntimeError, match="an int64 slot for each token"):
        serving.reshape_and_cache(key, value, key_cache, value_cache, slots.int())
    with pytest.raises(RuntimeError, match="on the same device"):
        serving.reshape_and_cache(key, value, key_cache.cpu(), value_cache, slots)
    serving.reshape_and_cache(key, value, key_cache[:0], value_cache[:0], slots.fill_(-1))


# --- rotary_embedding ---


@native
@pytest.mark.parametrize("width", [8, 4])
@pytest.mark.parametrize("is_neox", [False, True])
@pytest.mark.parametrize("dtype", supported(FLOATING))
def test_rotary_embedding(dtype: torch.dtype, is_neox: bool, width: int) -> None:
    """On slices of a projection, as engines pass them: (tokens, heads * head size)."""
    positions = torch.tensor([3, 0, 49, 7, 7])
    projected = sample(5, 6 * 8, dtype=dtype, low=-2, high=2)
    mine = projected.to(DEVICE)
    for whole, where, numbers in (
        (projected, positions, table(dtype, width)),
        (mine, positions.to(DEVICE), table(dtype, width).to(DEVICE)),
    ):
        query, key, _ = whole.split([24, 16, 8], 1)
        serving.rotary_embedding(where, query, key, 8, numbers, is_neox)
    assert_close(mine, projected)


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_a_key_with_another_number_of_tokens_is_refused(device: str) -> None:
    """It is refused although its number of elements would fit."""
    positions = torch.arange(2, device=device)
    query, key = torch.ones(2, 16, device=device), torch.ones(3, 16, device=device)
    numbers = table(torch.float32, 8).to(device)
    with pytest.raises((RuntimeError, ValueError), match="query and key"):
        serving.rotary_embedding(positions, query, key, 8, numbers)
    with pytest.raises((RuntimeError, ValueError), match="query and key"):
        serving.rotary_embedding(positions, key, None, 8, numbers)
    assert query.eq(1).all()


def test_wrong_arguments_of_rotary_embedding() -> None:
    positions, query = torch.arange(2, device=DEVICE), torch.ones(2, 16, device=DEVICE)
    numbers = table(torch.float32, 8).to(DEVICE)
    with pytest.raises(RuntimeError, match="whole heads of 4611686018427387904 for each"):
        serving.rotary_embedding(positions, query, None, 2**62, numbers)
    with pytest.raises(RuntimeError, match="query and key of one dtype"):
        serving.rotary_embedding(positions, query, query.half(), 8, numbers)
    with pytest.raises(RuntimeError, match="expected int64 positions"):
        serving.rotary_embedding(positions.int(), query, None, 8, numbers)


# --- fused_add_rms_norm, gates ---


@native
@pytest.mark.parametrize("dtype", supported(FLOATING))
def test_fused_add_rms_norm(dtype: torch.dtype) -> None:
    given = [sample(3, 4, 16, dtype=dtype, seed=1), sample(3, 4, 16, dtype=dtype, seed=2)]
    weight = sample(16, dtype=dtype, seed=3)
    mine = on_device(*given, weight)
    serving.fused_add_rms_norm(*given, weight, 1e-6)
    serving.fused_add_rms_norm(*mine, 1e-6)
    for actual, expected in zip(mine, given, strict=False):
        assert_close(actual, expected)
    expected = torch.nn.functional.rms_norm(given[1].float(), (16,), weight.float(), 1e-6)
    torch.testing.assert_close(given[0].float(), expected, rtol=1e-2, atol=1e-2)


@native
@pytest.mark.parametrize("name", ["silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"])
@pytest.mark.parametrize("dtype", supported(FLOATING))
def test_gates(dtype: torch.dtype, name: str) -> None:
    given = sample(3, 4, 14, dtype=dtype, low=-3, high=3)
    gate = getattr(serving, name)
    assert_close(gate(given.to(DEVICE)), gate(given))
    out = torch.empty(4, 3, 7, dtype=dtype, device=DEVICE).transpose(0, 1)
    assert gate(given.to(DEVICE), out) is out
    assert_close(out, gate(given))
    assert gate(given[:0].to(DEVICE)).shape == (0, 4, 7)


def test_a_gate_of_another_size_is_refused() -> None:
    with pytest.raises(RuntimeError, match="half its last dimension"):
        serving.silu_and_mul(torch.zeros(3, 8, device=DEVICE), torch.zeros(3, 5, device=DEVICE))


# --- attention_with_cache ---


def attend(given: dict[str, Any], device: str, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    tensors = {
        name: value.to(device) if isinstance(value, torch.Tensor) else value
        for name, value in (given | options).items()
    }
    result: tuple[torch.Tensor, torch.Tensor] = serving.attention_with_cache(
        **tensors, max_seqlen_q=max(QUERIES), max_seqlen_k=max(KEYS)
    )
    return result


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "not causal": {"causal": False, "scale": 0.5},
    "window": {"window": (3, -1)},
    "soft cap": {"softcap": 2.0},
    "slopes": {"alibi_slopes": torch.tensor([0.5, 0.25, 0.125, 0.0625])},
    "sinks": {"sinks": torch.tensor([0.5, -1.0, 2.0, 0.0])},
    "one sink": {"sinks": torch.tensor([0.5])},
    "scales": {"k_scale": torch.tensor([0.5, 2.0]), "v_scale": torch.tensor(0.25)},
    "all": {
        "window": (4, 0),
        "softcap": 3.0,
        "sinks": torch.ones(4),
        "alibi_slopes": torch.full((4, 4), 0.1),
    },
}


@native
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("dtype", supported(FLOATING))
def test_attention_with_cache(dtype: torch.dtype, options: dict[str, Any]) -> None:
    given = cached(dtype)
    actual, expected = attend(given, DEVICE, **options), attend(given, "cpu", **options)
    assert_close(actual[0], expected[0])
    torch.testing.assert_close(actual[1].cpu(), expected[1], rtol=1e-4, atol=1e-4)


@native
@pytest.mark.parametrize("cache", FLOAT8)
@pytest.mark.parametrize("dtype", supported(FLOATING))
def test_attention_with_a_float8_cache(dtype: torch.dtype, cache: torch.dtype) -> None:
    given, options = cached(dtype, cache), OPTIONS["scales"]
    assert_close(attend(given, DEVICE, **options)[0], attend(given, "cpu", **options)[0])


@native
def test_a_cache_is_read_after_it_is_written() -> None:
    """A sequence that grows by one token at a time gives the result of attention over the whole."""
    key, value = (sample(11, HEADS, 8, dtype=torch.float32, seed=seed) for seed in (1, 2))
    query = sample(11, 4, 8, dtype=torch.float32, seed=3)
    caches = [torch.zeros(BLOCKS, SIZE, HEADS, 8, device=DEVICE) for _ in range(2)]
    blocks = torch.tensor([[7, 2, 9]], dtype=torch.int32, device=DEVICE)
    starts = torch.tensor([0, 1], dtype=torch.int32, device=DEVICE)
    mine = [tensor.to(DEVICE) for tensor in (query, key, value)]
    results = []
    for i in range(11):
        slot = blocks[0, i // SIZE].long() * SIZE + i % SIZE
        serving.reshape_and_cache(mine[1][i : i + 1], mine[2][i : i + 1], *caches, slot[None])
        count = torch.tensor([i + 1], dtype=torch.int32, device=DEVICE)
        out, _ = serving.attention_with_cache(
            mine[0][i : i + 1], *caches, starts, count, blocks, 1, i + 1
        )
        results.append(out)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(tensor.transpose(0, 1)[None] for tensor in (query, key, value)),
        is_causal=True,
        enable_gqa=True,
    )
    assert_close(torch.cat(results), expected[0].transpose(0, 1).contiguous())


def test_attention_with_a_cache_of_another_dtype_runs_on_the_cpu() -> None:
    if not supported(torch.float16):
        pytest.skip("generated without torch.float16")
    given = cached(torch.float32, torch.float16)
    with backend.count_fallbacks() as counted:
        actual, _ = attend(given, DEVICE)
    assert list(counted) == [f"{DEVICE}::attention_with_cache"]
    assert_close(actual, attend(given, "cpu")[0])


def test_wrong_arguments_of_attention_with_cache() -> None:
    given = cached(torch.float32)
    for name, wrong, says in (
        ("seqused_k", given["seqused_k"].long(), "to be int32 of sizes .any., but got int64"),
        ("block_table", given["block_table"][:2], "block_table to be int32 of sizes .4, any., but"),
        ("query", given["query"][..., :4], "does not fit the caches"),
        ("key_cache", given["key_cache"][:, :, :0], "does not fit the caches"),
        ("sinks", torch.ones(3), "expected sinks to be float32 of sizes .4."),
        ("alibi_slopes", torch.ones(3, 4), "expected alibi_slopes to be float32 of sizes .4, 4."),
        ("k_scale", torch.ones(2).cfloat(), "expected k_scale to be float32 of sizes .4, 2."),
        ("v_scale", torch.ones(3), "expected v_scale to be float32 of sizes .4, 2."),
        ("softcap", -1.0, "softcap of 0 or more"),
    ):
        with pytest.raises(RuntimeError, match=says):
            attend(given | {name: wrong}, DEVICE)
    # Caches with 0 heads: the check must not divide by this number.
    caches = {name: given[name][:, :, :0] for name in ("key_cache", "value_cache")}
    with pytest.raises(RuntimeError, match="does not fit the caches"):
        attend(given | caches, DEVICE)


@pytest.mark.parametrize("name", ["sinks", "alibi_slopes", "k_scale", "v_scale"])
@pytest.mark.parametrize("place", ["cpu", pytest.param(f"{DEVICE}:1", marks=needs_two_devices)])
def test_arguments_on_another_device_are_refused(place: str, name: str) -> None:
    given = {key: tensor.to(DEVICE) for key, tensor in cached(torch.float32).items()}
    elsewhere = {name: torch.ones(1, device=place)}
    with pytest.raises(
        RuntimeError, match=f"on the same device, but (got {name}|one) is on {place}"
    ):
        serving.attention_with_cache(**given, **elsewhere, max_seqlen_q=5, max_seqlen_k=9)
    if name.endswith("scale"):
        with pytest.raises(
            RuntimeError, match=f"on the same device, but (got {name}|one) is on {place}"
        ):
            serving.reshape_and_cache(
                *on_device(*tokens(torch.float32)), SLOTS.to(DEVICE), **elsewhere
            )


# --- Numbers that only the device sees ---


def store_beyond_the_cache() -> None:
    key, value, key_cache, value_cache = on_device(*tokens(torch.float32))
    serving.reshape_and_cache(key, value, key_cache, value_cache, SLOTS.to(DEVICE) + 2)


def turn_beyond_the_table() -> None:
    query, positions = torch.zeros(1, 8, device=DEVICE), torch.tensor([50], device=DEVICE)
    serving.rotary_embedding(positions, query, None, 8, table(torch.float32, 8).to(DEVICE))


def attend_beyond_the_cache() -> None:
    given = cached(torch.float32)
    attend(given | {"block_table": given["block_table"] + BLOCKS}, DEVICE)


@pytest.mark.native
@reports_errors
@pytest.mark.parametrize(
    ("use", "says"),
    [
        (store_beyond_the_cache, "slot 49 is out of range for a cache of 48 slots"),
        (turn_beyond_the_table, "position 50 is out of range for a table of 50 positions"),
        (attend_beyond_the_cache, "is out of range: the cache has 12 blocks"),
    ],
)
def test_indices_out_of_range_are_reported(use: Callable[[], None], says: str) -> None:
    use()
    with pytest.raises(RuntimeError, match=says):
        backend.synchronize()


# --- Scratch memory ---

CONVERTED = f"""
import importlib, torch
serving = importlib.import_module("{serving.__name__}")
there = "{DEVICE}"

def column(value, dtype):
    return torch.full((300,), value, dtype=dtype, device=there)

# Drawn from the three largest probabilities, with dtypes that the family does not accept.
logits = torch.tensor([0.05, 0.4, 0.05, 0.2, 0.15, 0.05]).log().repeat(300, 1).to(there)
drawn = serving.top_k_top_p_sample(logits, column(3, torch.int64), temperature=column(2, torch.float64))
assert set(drawn.tolist()) == {{1, 3, 4}}, set(drawn.tolist())

key = torch.ones(4, 2, 8, device=there)
caches = [torch.zeros(2, 4, 2, 8, device=there).to(torch.float8_e4m3fn) for _ in range(2)]
scale = torch.full((2,), 0.5, dtype=torch.float64, device=there)
serving.reshape_and_cache(key, key, *caches, torch.arange(4, device=there), scale, scale)
assert caches[0][0].float().eq(2).all() and caches[1][0].float().eq(2).all()
"""


def test_converted_arguments_are_kept_until_the_kernel_has_read_them(tmp_path: Path) -> None:
    """A kernel may allocate scratch memory before it reads its arguments."""
    source = Path(__file__).with_name("poisoned_device.cpp")
    run_python(CONVERTED, changed_device(source, tmp_path))
