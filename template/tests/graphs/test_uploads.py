"""Operators of more_operators within a capture: uploads of numbers, and sizes that need a wait."""

from __future__ import annotations

import gc

import pytest
import torch
from backend import DEVICE, backend
from support import has_function, needs

pytestmark = needs(torch.float32)


def test_a_graph_keeps_the_pinned_memory_of_its_copies() -> None:
    """Operators upload numbers, and the program frees memory that the graph copies from."""
    sources = [torch.arange(6.0).pin_memory()]
    x = torch.randn(1, 1, 5, 6, device=DEVICE)
    y = torch.empty(6, device=DEVICE)

    def work() -> torch.Tensor:
        y.copy_(sources[0], non_blocking=True)
        padded = torch.nn.functional.pad(x, (1, 2, 3, 1), mode="replicate")
        return torch.nn.functional.interpolate(padded, size=(7, 3), mode="bilinear")

    expected = work().cpu()
    graph = backend.Graph()
    with backend.graph(graph):
        z = work()
    sources.clear()
    gc.collect()
    others = [torch.full((size,), 3.0).pin_memory() for size in (4, 6, 20, 45) for _ in range(8)]
    y.zero_()
    graph.replay()
    torch.testing.assert_close(z.cpu(), expected)
    assert y.tolist() == list(range(6))
    del others


@pytest.mark.skipif(
    not has_function("families", "compact"), reason="nonzero runs on the CPU of this device"
)
def test_an_operator_with_a_data_dependent_size_is_refused() -> None:
    x = torch.ones(4, device=DEVICE)
    refused = pytest.raises(RuntimeError, match="aten::nonzero waits for the device")
    with refused, backend.graph(backend.Graph()):
        torch.nonzero(x)
    assert not backend.is_current_stream_capturing()
    assert (x + 1).tolist() == [2] * 4
