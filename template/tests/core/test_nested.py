"""Nested tensors, jagged and strided, behave as on the CPU."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from backend import DEVICE
from core.comparisons import close
from support import natively, needs, sample, supported

pytestmark = [
    needs(torch.float32, torch.int64),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
]

LENGTHS = (3, 5, 2)
HEADS, WIDTH = 4, 8

Function = Callable[[torch.Tensor], Any]


def parts(device: str, *, width: int = 6, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Return leaves of several lengths."""
    return [
        sample(length, width, dtype=dtype, low=-1, high=1, seed=length).to(device).requires_grad_()
        for length in LENGTHS
    ]


def jagged(leaves: list[torch.Tensor]) -> torch.Tensor:
    result: torch.Tensor = torch.nested.as_nested_tensor(leaves, layout=torch.jagged)
    return result


def strided(leaves: list[torch.Tensor]) -> torch.Tensor:
    result: torch.Tensor = torch.nested.as_nested_tensor(leaves)
    return result


def compare(
    function: Function, make: Callable[[list[torch.Tensor]], torch.Tensor], **options: Any
) -> None:
    """Compare the parts of the result, and the gradients, with those of the CPU."""
    results = []
    for device in ("cpu", DEVICE):
        leaves = parts(device, **options)
        result = function(make(leaves))
        assert result.device.type == device
        pieces = list(result.unbind()) if result.is_nested else [result]
        gradients: list[torch.Tensor] = []
        if result.requires_grad:
            torch.cat([piece.reshape(-1) for piece in pieces]).square().sum().backward()
            gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
        results.append([tensor.detach().cpu() for tensor in (*pieces, *gradients)])
    tolerances = close(options.get("dtype", torch.float32))
    torch.testing.assert_close(results[1], results[0], equal_nan=True, **tolerances)


def weights(device: torch.device) -> torch.Tensor:
    return sample(6, 6, seed=9).to(device)


SHARED: dict[str, Function] = {
    "clone": lambda n: n.clone(),
    "add": lambda n: n + n,
    "mul": lambda n: n * n,
    "by a number": lambda n: n * 3,
    "div": lambda n: n / 2,
    "neg": lambda n: -n,
    "relu": lambda n: F.relu(n),
    "gelu": lambda n: F.gelu(n),
    "silu": lambda n: F.silu(n),
    "softmax": lambda n: F.softmax(n, -1),
    "linear": lambda n: F.linear(n, weights(n.device)),
    "dropout": lambda n: F.dropout(n, 0.0),
    "to_padded_tensor": lambda n: n.to_padded_tensor(0.0),
    "transpose": lambda n: n.transpose(1, 2).contiguous(),
    "greater": lambda n: n.detach() > 0,
    "isnan": lambda n: n.detach().isnan(),
    "to": lambda n: n.to("cpu").to(n.device),
}
JAGGED: dict[str, Function] = {
    "tanh": lambda n: n.tanh(),
    "layer_norm": lambda n: F.layer_norm(n, (6,)),
    "sum of rows": lambda n: n.detach().sum(-1).values(),
    "mean of lengths": lambda n: n.detach().mean(1),
    "unflatten": lambda n: n.unflatten(-1, (2, 3)),
    "values": lambda n: n.values(),
}
STRIDED: dict[str, Function] = {
    "bmm": lambda n: torch.bmm(n, n.transpose(1, 2)),
    "select": lambda n: n[1],
    "abs": lambda n: n.detach().abs(),
    "fill_": lambda n: n.detach().clone().fill_(3.0),
    "zeros_like": lambda n: torch.zeros_like(n),
}


@pytest.mark.parametrize("name", [*SHARED, *JAGGED])
def test_jagged(name: str) -> None:
    compare({**SHARED, **JAGGED}[name], jagged)


@pytest.mark.parametrize("padding", [float("-inf"), float("inf"), -1.0, 3.0])
@pytest.mark.parametrize("dtype", supported(torch.int16, torch.int64, torch.float16))
def test_padding_out_of_range_is_clamped_to_the_dtype(dtype: torch.dtype, padding: float) -> None:
    def padded(rows: torch.Tensor) -> Any:
        offsets = torch.tensor([0, 1, 3], device=rows.device)
        return torch.ops.aten._jagged_to_padded_dense_forward(rows, [offsets], [2], padding)

    rows = torch.ones(3, 2, dtype=dtype)
    torch.testing.assert_close(padded(rows.to(DEVICE)).cpu(), padded(rows))


@pytest.mark.parametrize(
    "name", ["softmax", "linear", "layer_norm", "mean of lengths", "to_padded_tensor"]
)
def test_jagged_tensors_do_not_fall_back(name: str) -> None:
    tensor = jagged(parts(DEVICE))
    with natively():
        result = {**SHARED, **JAGGED}[name](tensor)
        if result.requires_grad:
            (result.values() if result.is_nested else result).sum().backward()


@pytest.mark.parametrize("name", [*SHARED, *STRIDED])
def test_strided(name: str) -> None:
    compare({**SHARED, **STRIDED}[name], strided)


def attend(tensor: torch.Tensor, **options: Any) -> torch.Tensor:
    query, key, value = (
        (tensor * factor).unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
        for factor in (1.0, 0.5, 2.0)
    )
    mixed = F.scaled_dot_product_attention(query, key, value, **options)
    return mixed.transpose(1, 2).flatten(-2)


@pytest.mark.parametrize(
    "dtype", supported(torch.float32, torch.float64, torch.bfloat16, torch.float16)
)
@pytest.mark.parametrize("options", [{}, {"scale": 0.3}])
def test_attention_on_jagged_tensors(options: dict[str, Any], dtype: torch.dtype) -> None:
    compare(lambda n: attend(n, **options), jagged, width=HEADS * WIDTH, dtype=dtype)


def test_attention_on_jagged_tensors_runs_on_the_device() -> None:
    leaves = parts(DEVICE, width=HEADS * WIDTH)
    with natively():
        attend(jagged(leaves)).values().sum().backward()


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_sizes_of_padded_tensors_can_be_on_any_device(device: str) -> None:
    padded = sample(2, 3, 4)
    sizes = torch.tensor([[4, 2], [4, 3]]).flip(1)
    expected = torch._nested_from_padded(padded, sizes.contiguous()).unbind()
    # Also in column-major order.
    turned = sizes.T.contiguous().to(device).T
    actual = torch._nested_from_padded(padded.to(DEVICE), turned).unbind()
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one.cpu(), other)
    with pytest.raises(RuntimeError, match="a row of sizes for each of 2"):
        torch._nested_from_padded(padded.to(DEVICE), sizes[:1])


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_strided_tensors_are_loaded_onto_the_device(device: str) -> None:
    saved = strided(parts(device)).detach()
    file = io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    with torch.serialization.safe_globals([torch._utils._rebuild_nested_tensor]):
        loaded = torch.load(file, map_location=DEVICE)
    assert loaded.device.type == DEVICE
    for one, other in zip(loaded.unbind(), saved.unbind(), strict=True):
        torch.testing.assert_close(one.cpu(), other.cpu())
    assert copy.copy(saved).is_nested


def test_unsupported_operators_on_strided_tensors_raise_an_error() -> None:
    tensor = strided(parts(DEVICE)).detach()
    for function in (
        lambda n: n.exp(),
        lambda n: n.sum(-1, keepdim=True),
        lambda n: F.layer_norm(n, (6,), *torch.ones(2, 6, device=DEVICE)),
    ):
        with pytest.raises(
            NotImplementedError, match=f"no kernel for strided nested tensors of {DEVICE}.*jagged"
        ):
            function(tensor)
