"""``make_graphed_callables``: modules and functions that replay graphs."""

from __future__ import annotations

import copy

import pytest
import torch
from backend import DEVICE, backend
from support import needs

pytestmark = needs(torch.float32)


def values(seed: int, *, grad: bool = False) -> torch.Tensor:
    draws = torch.Generator().manual_seed(seed)
    return torch.randn(4, 3, generator=draws).to(DEVICE).requires_grad_(grad)


def gradients(module: torch.nn.Module) -> list[object]:
    return [weight.grad.tolist() for weight in module.parameters() if weight.grad is not None]


def test_a_graphed_module_trains_as_the_eager_module() -> None:
    eager = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh()).to(DEVICE)
    graphed = backend.make_graphed_callables(copy.deepcopy(eager), (values(0, grad=True),))
    for seed in (1, 2):
        inputs = values(seed, grad=True), values(seed, grad=True)
        results = [module(x) for module, x in zip((eager, graphed), inputs, strict=True)]
        assert results[1].tolist() == results[0].tolist()
        for result in results:
            result.square().sum().backward()
        assert gradients(graphed) == gradients(eager)
        assert inputs[0].grad is not None and inputs[1].grad is not None
        assert inputs[1].grad.tolist() == inputs[0].grad.tolist()


def test_a_graphed_module_replays_only_in_the_captured_training_mode() -> None:
    module = torch.nn.Linear(3, 2).to(DEVICE)
    replaying = backend.make_graphed_callables(module, (values(0),))
    first = replaying(values(1))
    again = replaying(values(2))
    assert first.data_ptr() == again.data_ptr()
    replaying.eval()
    assert replaying(values(2)).data_ptr() != again.data_ptr()
    assert replaying(values(2)).tolist() == again.tolist()


def test_several_callables_can_be_graphed_together() -> None:
    def double(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, x + 1

    def join(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * y).sum()

    x = values(0, grad=True)
    samples = ((values(0, grad=True),), (values(0, grad=True), values(1, grad=True)))
    first, second = backend.make_graphed_callables((double, join), samples)
    second(*first(x)).backward()
    reference = values(0, grad=True)
    join(*double(reference)).backward()
    assert x.grad is not None and reference.grad is not None
    assert x.grad.tolist() == reference.grad.tolist()


def test_an_unused_input_requires_allow_unused_input() -> None:
    samples = (values(0, grad=True), values(1, grad=True))
    with pytest.raises(RuntimeError):
        backend.make_graphed_callables(lambda x, y: x * 2, samples)
    graphed = backend.make_graphed_callables(lambda x, y: x * 2, samples, allow_unused_input=True)
    x, y = values(2, grad=True), values(3, grad=True)
    graphed(x, y).sum().backward()
    assert x.grad is not None and bool((x.grad == 2).all())
    assert y.grad is None


def test_an_argument_that_is_not_a_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="tensors only"):
        backend.make_graphed_callables(lambda x, y: x * y, (values(0), 2))


def test_a_module_with_hooks_is_refused() -> None:
    module = torch.nn.Linear(3, 2).to(DEVICE)
    module.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="hooks"):
        backend.make_graphed_callables(module, (values(0),))
