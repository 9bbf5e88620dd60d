"""Attention of concatenated sequences, which torch.nn.attention.varlen calls."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import (
    FLOATING,
    computed_dtypes,
    needs,
    reports_errors,
    sample,
    since,
    supported,
)
from torch.nn.functional import scaled_dot_product_attention

pytestmark = [needs(torch.float32, torch.int32), pytest.mark.usefixtures("everything_is_native")]

TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-12}
LENGTHS = ([5, 1, 0, 9], [7, 4, 3, 9])
Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
forward: Any = torch.ops.aten._flash_attention_forward


def starts(counts: list[int]) -> torch.Tensor:
    return torch.tensor([0, *counts], dtype=torch.int32).cumsum(0, dtype=torch.int32)


def make(
    dtype: torch.dtype,
    lengths: tuple[list[int], list[int]] = LENGTHS,
    heads: tuple[int, int] = (4, 2),
) -> Tensors:
    shapes = [(sum(lengths[kind]), heads[kind], 8) for kind in (0, 1, 1)]
    query, key, value = (
        sample(*shape, dtype=dtype, low=-2, high=2, seed=seed) for seed, shape in enumerate(shapes)
    )
    return query, key, value


def visible(queries: int, keys: int, causal: bool, window: tuple[int, int]) -> torch.Tensor:
    """Return which keys each query sees. The last query is aligned with the last key."""
    distance = torch.arange(keys)[None] - torch.arange(queries)[:, None] - (keys - queries)
    seen = distance <= 0 if causal else torch.ones(queries, keys, dtype=torch.bool)
    if window[0] >= 0:
        seen &= distance >= -window[0]
    if window[1] >= 0:
        seen &= distance <= window[1]
    return seen


def attend_one_by_one(
    tensors: Tensors,
    lengths: tuple[list[int], list[int]],
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    scale: float | None = None,
) -> torch.Tensor:
    """Return the CPU's dense attention of each sequence."""
    results = []
    bounds = [pairwise(starts(counts).tolist()) for counts in lengths]
    for (first, last), (first_key, last_key) in zip(*bounds, strict=True):
        query = tensors[0][first:last].transpose(0, 1)
        key, value = (tensor[first_key:last_key].transpose(0, 1) for tensor in tensors[1:])
        seen = visible(last - first, last_key - first_key, causal, window)
        result = scaled_dot_product_attention(
            *(query[None], key[None], value[None]), seen, scale=scale, enable_gqa=True
        )
        results.append(result[0].transpose(0, 1).nan_to_num())
    return torch.cat(results)


@pytest.mark.parametrize("window", [(-1, -1), (2, 0), (1, 1)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "dtype", [each for each in supported(FLOATING) if each in computed_dtypes()]
)
def test_results_and_gradients(dtype: torch.dtype, causal: bool, window: tuple[int, int]) -> None:
    theirs = [tensor.requires_grad_() for tensor in make(dtype)]
    mine = [tensor.detach().to(DEVICE).requires_grad_() for tensor in theirs]
    bounds = [starts(counts).to(DEVICE) for counts in LENGTHS]
    most = [max(counts) for counts in LENGTHS]
    window_sizes = {"window_size_left": window[0], "window_size_right": window[1]}
    actual = forward(*mine, *bounds, *most, 0.0, causal, False, scale=0.3, **window_sizes)[0]
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    inputs = tuple(tensor.to(wide) for tensor in theirs)
    expected = attend_one_by_one(inputs, LENGTHS, causal, window, 0.3)
    tolerance = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(actual.cpu(), expected.to(dtype), **tolerance)
    gradient = sample(*expected.shape, dtype=dtype, seed=9)
    actual.backward(gradient.to(DEVICE))
    expected.backward(gradient.to(wide))
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one.grad.cpu(), other.grad, **tolerance)


def test_dense_batches() -> None:
    query, key, value = (sample(2, 5, 4, 8, dtype=torch.float32, seed=seed) for seed in range(3))
    mine = [tensor.to(DEVICE) for tensor in (query, key, value)]
    out, logsumexp, *_ = forward(*mine, None, None, 5, 5, 0.0, True, False)
    expected = scaled_dot_product_attention(
        *(tensor.transpose(1, 2) for tensor in (query, key, value)), is_causal=True
    )
    torch.testing.assert_close(out.cpu(), expected.transpose(1, 2), rtol=1e-5, atol=1e-5)
    assert logsumexp.shape == (2, 4, 5)


def test_no_keys_and_no_queries() -> None:
    query, key, value = (tensor.to(DEVICE) for tensor in make(torch.float32))
    none = torch.zeros(3, dtype=torch.int32, device=DEVICE)
    bounds = starts([9, 6]).to(DEVICE)
    out, logsumexp, *_ = forward(query, key[:0], value[:0], bounds, none, 9, 0, 0.0, False, False)
    assert not out.any()
    assert (logsumexp == torch.inf).all()
    out, *_ = forward(
        query[:0], key, value, none, starts([20, 3]).to(DEVICE), 0, 20, 0.0, False, False
    )
    assert out.shape == (0, 4, 8)


def test_wrong_arguments_are_refused() -> None:
    query, key, value = (tensor.to(DEVICE) for tensor in make(torch.float32))
    bounds = [starts(counts).to(DEVICE) for counts in LENGTHS]
    more = (9, 9, 0.0, False, False)
    with pytest.raises(
        RuntimeError, match=r"expected cum_seq_q to be int32 of sizes .any., but got int64"
    ):
        forward(query, key, value, bounds[0].long(), bounds[1], *more)
    with pytest.raises(RuntimeError, match=r"expected cum_seq_k to be int32 of sizes .3., but got"):
        forward(query, key, value, bounds[0][:3], bounds[1], *more)
    with pytest.raises(RuntimeError, match="cum_seq_q is empty"):
        forward(query, key, value, bounds[0][:0], bounds[1][:0], *more)
    with pytest.raises(RuntimeError, match="do not fit together"):
        forward(query, key[..., :4], value, *bounds, *more)
    with pytest.raises(RuntimeError, match="do not fit together"):
        forward(query[None].expand(2, -1, -1, -1), key[None], value[None], None, None, *more)
    for slopes in (torch.ones(3), torch.ones(5, 4)):
        with pytest.raises(
            RuntimeError, match=r"expected alibi_slopes to be float32 of sizes .4, 4."
        ):
            forward(query, key, value, *bounds, *more, alibi_slopes=slopes.to(DEVICE))
    with pytest.raises(RuntimeError, match="alibi_slopes is on cpu"):
        forward(query, key, value, *bounds, *more, alibi_slopes=torch.ones(4))
    for name, number in (("window_size_left", -2), ("window_size_right", -2)):
        with pytest.raises(RuntimeError, match="windows of -1"):
            forward(query, key, value, *bounds, *more, **{name: number})
    with pytest.raises(RuntimeError, match="on the same device"):
        forward(query, key.cpu(), value, *bounds, *more)


def test_backward_refuses_other_sizes_than_those_of_forward() -> None:
    """The backward pass reads the result, its gradient and the logsumexp by the sizes of the query."""
    query, key, value = (tensor.to(DEVICE) for tensor in make(torch.float32))
    bounds = [starts(counts).to(DEVICE) for counts in LENGTHS]
    out, logsumexp, *state = forward(query, key, value, *bounds, 9, 9, 0.0, False, False)[:4]
    right = {"grad_out": out, "out": out, "logsumexp": logsumexp}
    for name in right:
        given = right | {name: right[name][:-1]}
        with pytest.raises(RuntimeError, match=f"expected {name} to be float32 of sizes"):
            torch.ops.aten._flash_attention_backward(
                *(given["grad_out"], query, key, value, given["out"], given["logsumexp"]),
                *(*bounds, 9, 9, 0.0, False, *state),
            )


@reports_errors
def test_descending_starts_are_refused() -> None:
    query, key, value = (tensor.to(DEVICE) for tensor in make(torch.float32))
    bounds = [starts(counts).to(DEVICE) for counts in LENGTHS]
    forward(query, key, value, bounds[0].flip(0), bounds[1], 9, 9, 0.0, False, False)
    with pytest.raises(RuntimeError, match="starts of sequences must ascend"):
        backend.synchronize()
    backend.acknowledge_failure()


@pytest.mark.skipif(not hasattr(backend, "default_generators"), reason="generated without rng")
def test_dropout_is_that_of_one_sequence() -> None:
    """Dense attention of the one sequence gives the same results and gradients."""

    def run(attend: Any) -> list[torch.Tensor]:
        torch.manual_seed(3)
        given = [x.to(DEVICE).requires_grad_() for x in make(torch.float32, ([9], [9]), (4, 4))]
        result = attend(*given)
        again = attend(*given)
        result.square().sum().backward()
        gradients = [x.grad for x in given]
        return [x.cpu() for x in (result, again, *gradients) if x is not None]

    def packed(*given: torch.Tensor) -> torch.Tensor:
        bounds = starts([9]).to(DEVICE)
        result: torch.Tensor = forward(*given, bounds, bounds, 9, 9, 0.5, False, False)[0]
        return result

    def dense(*given: torch.Tensor) -> torch.Tensor:
        batch = [x.transpose(0, 1)[None] for x in given]
        return scaled_dot_product_attention(*batch, dropout_p=0.5)[0].transpose(0, 1)

    results = run(packed)
    assert len(results) == 5
    assert not results[0].equal(results[1])
    for one, other in zip(results, run(dense), strict=True):
        torch.testing.assert_close(one, other)


@since((2, 10), "has torch.nn.attention.varlen")
@pytest.mark.parametrize("causal", [False, True])
def test_varlen_attn(causal: bool) -> None:
    from torch.nn.attention import varlen

    if backend.dtype_support(torch.uint64) == "unsupported":
        pytest.skip("generated without torch.uint64, the dtype of the random state")
    lengths = (LENGTHS[0], LENGTHS[0])
    theirs = [tensor.requires_grad_() for tensor in make(torch.float32, lengths, (4, 4))]
    mine = [tensor.detach().to(DEVICE).requires_grad_() for tensor in theirs]
    bounds = starts(LENGTHS[0]).to(DEVICE)
    attend: Any = varlen.varlen_attn
    if "window_size" in attend.__annotations__:
        options: dict[str, Any] = {"window_size": (-1, 0) if causal else (-1, -1)}
    else:
        options = {"is_causal": causal}
    actual = attend(*mine, bounds, bounds, 9, 9, **options)
    expected = attend_one_by_one((theirs[0], theirs[1], theirs[2]), lengths, causal)
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)
    actual.sin().sum().backward()
    expected.sin().sum().backward()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-5, atol=1e-5)


def takes(argument: str) -> bool:
    """Whether the operator has this argument in the installed PyTorch."""
    return any(given.name == argument for given in forward.default._schema.arguments)


@pytest.mark.skipif(not takes("block_table"), reason="this PyTorch has no paged keys")
def test_paged_keys() -> None:
    lengths = ([1, 3], [9, 5])
    query, key, value = make(torch.float32, lengths)
    pool = [torch.full((6, 4, 2, 8), torch.nan) for _ in range(2)]
    table = torch.tensor([[4, 1, 5], [0, 2, -1]], dtype=torch.int32)
    for number, (first, last) in enumerate(pairwise(starts(lengths[1]).tolist())):
        for i in range(first, last):
            block = table[number, (i - first) // 4]
            for cache, rows in zip(pool, (key, value), strict=True):
                cache[block, (i - first) % 4] = rows[i]
    counts = torch.tensor(lengths[1], dtype=torch.int32, device=DEVICE)
    bounds = starts(lengths[0]).to(DEVICE)
    mine = [tensor.to(DEVICE) for tensor in (query, *pool)]
    options = {"seqused_k": counts, "block_table": table.to(DEVICE)}
    actual = forward(*mine, bounds, None, 3, 9, 0.0, True, False, **options)[0]
    expected = attend_one_by_one((query, key, value), lengths, causal=True)
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_a_causal_bias_from_the_last_key() -> None:
    from torch.nn.attention.bias import causal_lower_right

    tensors = [sample(2, 4, rows, 8, dtype=torch.float32, seed=rows) for rows in (3, 7)]
    query, key = tensors
    mine = [tensor.to(DEVICE) for tensor in tensors]
    bias: Any = causal_lower_right(3, 7)
    actual = scaled_dot_product_attention(mine[0], mine[1], mine[1], bias)
    expected = scaled_dot_product_attention(query, key, key, bias)
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)
