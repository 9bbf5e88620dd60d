"""Compiled functions: writes to inputs, shapes, random numbers and devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from compile.programs import seeded
from support import has_function, needs, needs_two_devices
from torch import Tensor

Function = Callable[..., Any]


def mutation(x: Tensor, cache: Tensor) -> Any:
    """Writes to its inputs, also through views of them."""
    x.add_(1)
    cache[:, torch.tensor([1, 3], device=x.device)] = x[:2, :2]
    x[0].mul_(2)
    return x.t() + 1, cache


def shapes(x: Tensor, _: Tensor) -> Any:
    """Returns views and copies of many strides."""
    return (
        x.transpose(0, 1).reshape(-1),
        x[:, ::2] + 1,
        x.expand(2, *x.shape).contiguous(),
        torch.cat([x, x.flip(0)]),
        x.sort(),
        x.as_strided((2, 2), (1, 2), 1),
        x[[0, 2]],
        torch.arange(5, device=x.device),
        x.new_tensor([1.0, 2.0]),
        torch.where(x > 0, x, torch.tensor(3.0)),
    )


def strides(x: Tensor, _: Tensor) -> Any:
    """Takes views of results whose traced strides are wrong."""
    return (
        torch.copysign(x.t(), 2).reshape(-1),
        torch.floor_divide(x.t(), 0.5).reshape(-1),
        torch.nn.functional.batch_norm(x.view(2, 2, 6).mT, None, None, training=True)[:, 1] + 1,
    )


def breaks(x: Tensor, _: Tensor) -> Any:
    """Depends on values, so that it is compiled in pieces."""
    y = x.sin() + 1
    if y.sum().item() > 0:
        y = y * 2
    return y.cos(), y.nonzero()


def two_devices(x: Tensor, _: Tensor) -> Any:
    """Computes a part on the CPU."""
    return (x.cpu() + 1).to(x.device) @ x.t()


def draws(x: Tensor, _: Tensor) -> Any:
    """Draws random numbers in all the usual ways."""
    return torch.rand_like(x), torch.bernoulli(x.sigmoid()), torch.dropout(x, 0.5, train=True)


def views(x: Tensor, cache: Tensor) -> Any:
    """Returns views of its inputs and of a result, some of whose elements share memory."""
    y = x * 2
    return (
        x[:, :1].expand(4, 3),
        x[1:, 2],
        cache.t(),
        cache.view(torch.int32)[0],
        y[0].expand(3, 6),
        y,
        x.detach(),
        x[0:0],
    )


def host_numbers(x: Tensor, cache: Tensor) -> Any:
    """Mixes tensors with 0-dim tensors of the CPU, as any argument, and with masks of the CPU."""
    half, chosen = torch.tensor(0.5), torch.tensor([True, False, True, False])
    cache[:, torch.tensor([True, False, False, True, True])] = 4
    return (
        half * x,
        torch.maximum(half, x).sum(0),
        torch.where(torch.tensor(True), x, x * 2),
        torch.lerp(x, x + 1, half),
        half ** x.abs(),
        x[chosen] + 1,
    )


def checks(x: Tensor, _: Tensor) -> Any:
    """Calls ``torch._check`` on sizes that depend on values."""
    chosen = x[x > 0]
    torch._check(chosen.shape[0] <= x.numel())
    return chosen * 2, x.flatten()[: chosen.shape[0]]


PROGRAMS: list[Function] = [
    mutation,
    shapes,
    strides,
    breaks,
    two_devices,
    draws,
    views,
    host_numbers,
    checks,
]


def inputs() -> tuple[Tensor, Tensor]:
    """Return the arguments of the programs, the same each time."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(4, 6, generator=generator).to(DEVICE), torch.zeros(2, 5, device=DEVICE)


@pytest.mark.parametrize(
    "mode", ["reduce-overhead", pytest.param("default", marks=pytest.mark.full)]
)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore:.*runs without a graph")
def test_a_compiled_program_equals_eager(program: Function, mode: str) -> None:
    compiled = torch.compile(program, mode=mode)
    for _ in range(3):
        taken, expected = inputs(), inputs()
        results = seeded(compiled, *taken), seeded(program, *expected)
        torch.testing.assert_close((results[0], taken), (results[1], expected), check_stride=True)


def test_dynamic_sizes_equal_eager() -> None:
    compiled = torch.compile(lambda x: (x @ x.t()).softmax(-1).flatten(), dynamic=True)
    for size in (2, 3, 9):
        x = torch.randn(size, 4)
        torch.testing.assert_close(compiled(x.to(DEVICE)).cpu(), (x @ x.t()).softmax(-1).flatten())


@pytest.mark.parametrize("dynamic", [False, True])
def test_returned_views_follow_changing_sizes_and_strides(dynamic: bool) -> None:
    def program(x: Tensor, n: int) -> Any:
        return x[:, None].expand(-1, n), x.view(1, -1), x * 2

    compiled = torch.compile(program, mode="reduce-overhead", dynamic=dynamic)
    for size in (3, 3, 3, 4, 4, 4):
        for step in (1, 2, 1):
            x = torch.arange(size * step, dtype=torch.float32, device=DEVICE)[::step]
            given, expected = compiled(x, size), program(x, size)
            torch.testing.assert_close(given, expected, check_stride=True)
            x[0] = 9
            assert given[1][0, 0] == 9


def test_a_backward_pass_without_operators() -> None:
    compiled = torch.compile(lambda x: x + 1, mode="reduce-overhead")
    x = torch.zeros(3, device=DEVICE, requires_grad=True)
    for count in (1, 2, 3):
        compiled(x).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [count] * 3


def test_a_custom_operator_with_wrong_traced_strides() -> None:
    @torch.library.custom_op(f"{DEVICE}_tests::turned", mutates_args=())
    def turned(x: Tensor) -> Tensor:
        return x.t().clone()

    turned.register_fake(lambda x: x.new_empty(x.shape[::-1]))
    x = torch.randn(3, 4)
    compiled = torch.compile(lambda x: turned(x)[1] + 1)
    torch.testing.assert_close(compiled(x.to(DEVICE)).cpu(), x[:, 1] + 1)


def test_later_replays_do_not_change_results() -> None:
    """Replays do not change results and gradients of earlier calls."""
    model = torch.nn.Linear(8, 8, device=DEVICE)
    compiled = torch.compile(model, mode="reduce-overhead")
    x = torch.randn(4, 8, device=DEVICE)
    held = [compiled(x * number) for number in range(5)]
    expected = [model(x * number) for number in range(5)]
    torch.testing.assert_close(held, expected)
    sum(each.square().sum() for each in held).backward()
    actual = model.weight.grad
    model.weight.grad = None
    sum(each.square().sum() for each in expected).backward()
    torch.testing.assert_close(actual, model.weight.grad)


@pytest.mark.parametrize("mode", ["reduce-overhead", "default"])
def test_returned_views_share_memory(mode: str) -> None:
    def program(x: Tensor) -> Any:
        y = x + 1
        return y, y.t(), y[1:], y.view(torch.int32)

    compiled = torch.compile(program, mode=mode)
    for _ in range(3):
        x = torch.zeros(3, 2, device=DEVICE)
        given, expected = compiled(x), program(x)
        for results in (given, expected):
            results[0][2].add_(5)
        torch.testing.assert_close(given, expected)


@pytest.mark.parametrize(
    "backend_name", ["inductor", pytest.param("aot_eager", marks=pytest.mark.full)]
)
def test_checkpoint_repeats_random_numbers(backend_name: str) -> None:
    if not hasattr(backend, "get_rng_state"):
        pytest.skip("the backend was generated without random generators")

    def program(x: Tensor) -> Any:
        def part(x: Tensor) -> Tensor:
            return torch.nn.functional.dropout(x.sin(), 0.5)

        return torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False)

    def run(function: Function) -> Any:
        x = torch.arange(20.0, device=DEVICE, requires_grad=True)
        y = seeded(function, x)
        y.square().sum().backward()
        return y.detach(), x.grad, torch.rand(3, device=DEVICE)

    torch.testing.assert_close(run(torch.compile(program, backend=backend_name)), run(program))


def test_gradients_accumulate() -> None:
    model = torch.nn.Linear(8, 8, device=DEVICE)
    compiled = torch.compile(model, mode="reduce-overhead")
    x = torch.randn(4, 8, device=DEVICE)
    for _ in range(5):
        compiled(x).sum().backward()
    actual = model.weight.grad
    model.weight.grad = None
    model(x).sum().backward()
    torch.testing.assert_close(actual, model.weight.grad * 5)


@pytest.mark.skipif(
    not has_function("graphs", "begin_capture"), reason="the device library has no graphs"
)
def test_an_input_that_is_written_can_change_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{ENV_PREFIX}_COMPILER", "operators")  # host code is not captured

    def program(x: Tensor) -> Tensor:
        return x.add_(1) * 2

    compiled = torch.compile(program, mode="reduce-overhead")
    held = [torch.full((3,), float(number), device=DEVICE) for number in range(6)]
    with pytest.warns(UserWarning, match="writes to an input whose address differs"):
        results = [compiled(x) for x in held]
    assert [x[0].item() for x in held] == [1, 2, 3, 4, 5, 6]
    assert [x[0].item() for x in results] == [2, 4, 6, 8, 10, 12]


@needs(torch.bfloat16)
def test_autocast() -> None:
    if not torch.amp.is_autocast_available(DEVICE):
        pytest.skip("the backend was generated without autocast")
    model = torch.nn.Linear(8, 8, device=DEVICE)
    compiled = torch.compile(model)
    x = torch.randn(4, 8, device=DEVICE)
    with torch.autocast(DEVICE, torch.bfloat16):
        actual, expected = compiled(x), model(x)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual, expected)


@needs_two_devices
def test_a_compiled_function_runs_on_another_device() -> None:
    x = torch.randn(4, 8)
    result = torch.compile(lambda x: x.sin() + 1)(x.to(f"{DEVICE}:1"))
    assert result.device.index == 1
    torch.testing.assert_close(result.cpu(), x.sin() + 1)


def test_a_compiled_function_can_use_streams() -> None:
    stream = backend.Stream()

    def program(x: Tensor) -> Tensor:
        stream.wait_stream(backend.current_stream())
        with backend.stream(stream):
            y = x * 2
        backend.current_stream().wait_stream(stream)
        return y + 1

    torch.testing.assert_close(
        torch.compile(program)(torch.ones(4, device=DEVICE)).cpu(), torch.full((4,), 3.0)
    )


def test_flex_attention() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    size = 32
    tensors = [torch.randn(1, 2, size, 8, dtype=torch.float64).requires_grad_() for _ in range(3)]
    rows, columns = torch.arange(size)[:, None], torch.arange(size)
    scores = tensors[0] @ tensors[1].transpose(-1, -2) / 8**0.5 + (rows - columns) * 0.1
    expected = scores.masked_fill(columns > rows, -torch.inf).softmax(-1) @ tensors[2]
    mask = create_block_mask(
        lambda b, h, row, column: row >= column, None, None, size, size, DEVICE
    )
    query, key, value = (each.detach().float().to(DEVICE).requires_grad_() for each in tensors)
    result = torch.compile(flex_attention)(
        query, key, value, lambda score, b, h, row, column: score + (row - column) * 0.1, mask
    )
    torch.testing.assert_close(result.cpu(), expected.float())
    weights = torch.randn(expected.shape, dtype=torch.float64)
    (expected * weights).sum().backward()
    (result * weights.float().to(DEVICE)).sum().backward()
    for mine, exact in zip((query, key, value), tensors, strict=True):
        assert mine.grad is not None and exact.grad is not None
        torch.testing.assert_close(mine.grad.cpu(), exact.grad.float())


def test_an_exported_program_can_be_compiled() -> None:
    model = torch.nn.Linear(8, 8, device=DEVICE)
    sizes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(model, (torch.randn(3, 8, device=DEVICE),), dynamic_shapes=sizes)
    x = torch.randn(5, 8, device=DEVICE)
    torch.testing.assert_close(torch.compile(program.module())(x), model(x))
