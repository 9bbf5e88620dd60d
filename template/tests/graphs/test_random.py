"""Random operators draw new numbers in each replay: those of eager calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, backend
from support import needs
from torch.nn import functional

pytestmark = [
    needs(torch.float32, torch.int64),
    pytest.mark.skipif(not hasattr(backend, "default_generators"), reason="generated without rng"),
]


def attention() -> torch.Tensor:
    query = torch.ones(1, 2, 8, 4, device=DEVICE, requires_grad=True)
    functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5).sum().backward()
    assert query.grad is not None
    return query.grad


def attention_from_copies() -> torch.Tensor:
    """Use copies of saved tensors in the backward pass, as ``save_on_cpu`` does."""
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda saved: saved.clone()):
        return attention()


DRAWS: dict[str, Callable[[], torch.Tensor]] = {
    "rand": lambda: torch.rand(5, device=DEVICE),
    "two draws": lambda: torch.randn(3, device=DEVICE) + torch.rand(3, device=DEVICE),
    "after other work": lambda: (
        torch.ones(64, device=DEVICE).mul(2).add(torch.rand(64, device=DEVICE))
    ),
    "randint": lambda: torch.randint(100, (7,), device=DEVICE),
    "dropout": lambda: functional.dropout(torch.ones(64, device=DEVICE)),
    "bernoulli": lambda: torch.bernoulli(torch.full((9,), 0.5, device=DEVICE)),
    "poisson": lambda: torch.poisson(torch.full((9,), 20.0, device=DEVICE)),
    "gamma": lambda: torch._standard_gamma(torch.full((9,), 0.5, device=DEVICE)),
    "attention's dropout": attention,
    "attention's dropout from copies": attention_from_copies,
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_replays_draw_what_eager_calls_draw(draw: Callable[[], torch.Tensor]) -> None:
    def start() -> None:
        torch.manual_seed(5)
        torch.rand(3, device=DEVICE)

    start()
    expected = [draw().tolist() for _ in range(3)]
    state = backend.get_rng_state()
    start()
    graph = backend.Graph()
    with backend.graph(graph):
        result = draw()
    actual = []
    for _ in range(3):
        graph.replay()
        actual.append(result.tolist())
    assert actual == expected
    assert expected[0] != expected[1]
    assert torch.equal(backend.get_rng_state(), state)


def test_a_seed_takes_effect_at_the_next_replay() -> None:
    graph = backend.Graph()
    with backend.graph(graph):
        result = torch.rand(4, device=DEVICE)
    drawn = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        graph.replay()
        drawn.append(result.tolist())
    assert drawn[0] == drawn[2] != drawn[1]


def test_replays_draw_from_a_given_generator() -> None:
    generator = torch.Generator(DEVICE).manual_seed(3)
    expected = [torch.rand(4, device=DEVICE, generator=generator).tolist() for _ in range(2)]
    generator.manual_seed(3)
    graph = backend.Graph()
    with backend.graph(graph):
        result = torch.rand(4, device=DEVICE, generator=generator)
    actual = []
    for _ in range(2):
        graph.replay()
        actual.append(result.tolist())
    assert actual == expected


def test_replays_on_several_streams_draw_in_order() -> None:
    torch.manual_seed(5)
    expected = sum(torch.rand(64, device=DEVICE) for _ in range(8))
    assert isinstance(expected, torch.Tensor)
    torch.manual_seed(5)
    total = torch.zeros(64, device=DEVICE)
    graph = backend.Graph()
    with backend.graph(graph):
        total.add_(torch.rand(64, device=DEVICE))
    backend.synchronize()
    for _ in range(8):
        with backend.stream(backend.Stream()):
            graph.replay()
    backend.synchronize()
    assert torch.equal(total.cpu(), expected.cpu())


def test_a_seed_within_a_capture_is_refused() -> None:
    refused = pytest.raises(RuntimeError, match="random number generator")
    with refused, backend.graph(backend.Graph()):
        torch.manual_seed(1)


def test_random_operators_raise_while_the_default_stream_waits_for_the_capture() -> None:
    refused = pytest.raises(RuntimeError, match=r"broken: .* the default stream waits")
    with refused, backend.graph(backend.Graph()):
        backend.default_stream().wait_stream(backend.current_stream())
        with pytest.raises(RuntimeError, match="draws random numbers"):
            torch.rand(3, device=DEVICE)
