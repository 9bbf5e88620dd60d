"""The example of a compiler of whole graphs, where torch-mlir and IREE are installed."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import EXAMPLES, example, needs, run_python
from torch import Tensor, nn

pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")
pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")
pytestmark = [
    needs(torch.float32),
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]
graph_compiler = example("graph_compiler")


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Use the example's compiler with an empty cache, and return its counts."""
    name = f"iree-{tmp_path.name}"
    wanted = [name]
    known = backend.find_compiler("operators")
    compiler = graph_compiler.Compiler(tmp_path)
    backend.register_compiler(
        replace(known, name=name, usable=lambda: bool(wanted), compile=compiler)
    )
    monkeypatch.setenv(f"{ENV_PREFIX}_COMPILER", name)
    torch._dynamo.reset()
    graph_compiler.counts.clear()
    yield graph_compiler.counts
    wanted.clear()
    torch._dynamo.reset()


class Residual(nn.Module):
    """Convolutions with a norm and a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(4, 4, 3, padding=1) for _ in range(2))
        self.norm, self.head = nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm(self.first(x)))
        y = nn.functional.max_pool2d(torch.relu(y + self.second(y)), 2)
        return self.head(y.mean((2, 3)))


class Block(nn.Module):
    """A block of a GPT with its embedding, which the head shares."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.norms = nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)])
        self.heads, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        parts = self.heads(self.norms[0](x)).chunk(3, -1)
        q, k, v = (each.unflatten(-1, (2, 8)).transpose(1, 2) for each in parts)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return (x + self.mlp(self.norms[1](x))) @ self.embedding.weight.t()


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))


MODELS = [
    (mlp, torch.linspace(-1, 1, 24).view(3, 8)),
    (Residual, torch.linspace(-1, 1, 512).view(2, 4, 8, 8)),
    (Block, torch.arange(10).view(2, 5)),
]


@pytest.mark.parametrize(("make", "inputs"), MODELS)
def test_models(make: Callable[[], nn.Module], inputs: Tensor, counts: Any) -> None:
    model = make().eval()
    with torch.no_grad():
        expected = model(inputs)
        actual = torch.compile(model.to(DEVICE))(inputs.to(DEVICE))
    assert actual.device.type == DEVICE
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)
    # Other compilers do not support the backend's own attention operator.
    left = sum(count for name, count in counts.items() if "left" in name and "atten" not in name)
    assert counts["called"] > 0 and left == 0, counts


def test_a_registered_compiler_is_the_first_choice() -> None:
    run_python(
        f"""
        import runpy, torch
        example = runpy.run_path({str(EXAMPLES / "graph_compiler.py")!r})
        example["register"]("{DEVICE}")
        assert torch.{DEVICE}.compilers()[0] == "iree"
        result = torch.compile(lambda x: x.sin() * 2)(torch.zeros(3, device="{DEVICE}"))
        assert result.tolist() == [0, 0, 0] and example["counts"]["called"] == 1
        """
    )


@pytest.mark.parametrize(("make", "inputs"), MODELS[:2])
def test_training(make: Callable[[], nn.Module], inputs: Tensor, counts: Any) -> None:
    model = make()
    here = copy.deepcopy(model).to(DEVICE)
    model(inputs).square().sum().backward()
    torch.compile(lambda x: here(x).square().sum())(inputs.to(DEVICE)).backward()
    for each, expected in zip(here.parameters(), model.parameters(), strict=True):
        assert each.grad is not None
        torch.testing.assert_close(each.grad.cpu(), expected.grad, rtol=1e-4, atol=1e-5)
    for each, expected in zip(here.buffers(), model.buffers(), strict=True):
        torch.testing.assert_close(each.cpu(), expected, rtol=1e-4, atol=1e-5)
    assert counts["called"] > 1


@torch.no_grad()
def test_dynamic_batches_use_the_cache(counts: Any) -> None:
    model = mlp()
    compiled = torch.compile(model.to(DEVICE), dynamic=True)
    for batch in (2, 5, 2):
        x = torch.randn(batch, 8, device=DEVICE)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    assert (counts["compiled"], counts["found"], counts["called"]) == (2, 0, 3)
    torch._dynamo.reset()
    torch.compile(model, dynamic=True)(torch.randn(5, 8, device=DEVICE))
    assert (counts["compiled"], counts["found"]) == (2, 1)


@torch.no_grad()
def test_frozen_weights_are_compiled_into_the_program(counts: Any, tmp_path: Path) -> None:
    model, x = mlp().eval().to(DEVICE), torch.randn(3, 8, device=DEVICE)
    with torch._inductor.config.patch(freezing=True):  # Dynamo reads it as well
        result = torch.compile(model)(x)
    torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-5)
    (program,) = tmp_path.glob("*.mlir")
    assert "tensor<16x8xf32>" not in program.read_text().split("func.func")[1].split(")")[0]


@torch.no_grad()
def test_an_unsupported_operator_runs_eagerly(
    counts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    x = torch.tensor([3.0, 1.0, 2.0], device=DEVICE)
    with caplog.at_level(logging.WARNING):
        result = torch.compile(lambda x: (x + 1).sort()[0] * 2)(x)
    assert result.tolist() == [4, 6, 8]
    assert counts["left: aten.sort.default"] == 1 and counts["called"] == 2
    assert "aten.sort.default is left to the backend's own operator" in caplog.text


@torch.no_grad()
def test_an_error_of_the_compiler_is_raised(counts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(graph_compiler.OPTIONS, "target_backends", ["none-such"])
    with pytest.raises(RuntimeError, match=r"IREE does not compile .*\.mlir: .*none-such"):
        torch.compile(lambda x: x.sin() * 2)(torch.ones(3, device=DEVICE))
