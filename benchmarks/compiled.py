"""Times compiled models beside eager ones, in turns: ``python compiled.py EXAMPLES``.

Prints, as JSON, the median of each as a multiple of the eager one's. It runs on two processors:
one for the host, one for the simulator.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

DEVICE = "foo"
ROUNDS = 24
LINKS = 4
Call = Callable[[], object]


def chain(x: Tensor) -> Tensor:
    """Twenty elementwise operators."""
    for _ in range(LINKS):
        x = torch.relu(x * 1.01 + 0.1) - x.tanh()
    return x


def block(x: Tensor, rest: Tensor) -> Tensor:
    """The operators between the matrix products of a transformer."""
    return nn.functional.gelu(nn.functional.layer_norm(x, x.shape[-1:])) + rest


def rows(x: Tensor) -> Tensor:
    """A softmax, which has two reductions."""
    return x.softmax(-1)


def mlp() -> nn.Module:
    """Return the MLP of the rendered project's benchmarks."""
    layers = [layer for _ in range(3) for layer in (nn.Linear(256, 256), nn.ReLU())]
    return nn.Sequential(*layers).to(DEVICE)


def training(model: Callable[[Tensor], Tensor], x: Tensor, weights: list[nn.Parameter]) -> Call:
    """Return a forward and a backward pass."""

    def step() -> None:
        model(x).square().mean().backward()  # type: ignore[no-untyped-call]
        for weight in weights:
            weight.grad = None

    return step


def example(folder: Path, name: str) -> Any:
    """Return an example of the rendered project as a module."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def against_eager(make: Callable[[Callable[..., Any]], Call], **options: Any) -> float:
    """Return the time of a compiled call from ``make``, as a multiple of the eager one's."""
    calls = {"eager": make(lambda model: model)}
    calls["compiled"] = make(lambda model: torch.compile(model, **options))
    times: dict[str, list[float]] = {name: [] for name in calls}
    synchronize = torch.get_device_module(DEVICE).synchronize
    for _ in range(ROUNDS):
        for name, call in calls.items():
            synchronize()
            start = time.perf_counter()
            for _ in range(10):
                call()
            synchronize()
            times[name].append(time.perf_counter() - start)
    torch._dynamo.reset()
    eager, compiled = (median(each[ROUNDS // 4 :]) for each in times.values())
    return compiled / eager


def measure(examples: Path) -> dict[str, float]:
    """Measure training, decoding, and kernels."""
    found = {}
    x = torch.randn(64, 256, device=DEVICE)
    model = mlp()
    weights = list(model.parameters())
    gpt = example(examples, "gpt")
    writer = gpt.GPT().to(DEVICE)
    for mode in ("default", "reduce-overhead"):
        found[f"training {mode}"] = against_eager(
            lambda compiled: training(compiled(model), x, weights), mode=mode
        )
        for count in (1, 4):
            letters = torch.randint(len(gpt.LETTERS), (1, count)).to(DEVICE)

            def call(compiled: Callable[..., Any], letters: Tensor = letters) -> Call:
                callee = compiled(writer)
                return torch.no_grad()(lambda: callee(letters))

            found[f"gpt {count} {mode}"] = against_eager(call, mode=mode)
    for name, function, sizes in (
        ("chain", chain, [(1 << 20,)]),
        ("block", block, [(2048, 768)] * 2),
        ("rows", rows, [(256, 4096)]),
    ):
        inputs = [torch.randn(size, device=DEVICE) for size in sizes]

        def kernels(
            compiled: Callable[..., Any], function: Any = function, inputs: Any = inputs
        ) -> Call:
            callee = compiled(function)
            return lambda: callee(*inputs)

        found[name] = against_eager(kernels)
    letters = torch.randint(len(gpt.LETTERS), (16, 32)).to(DEVICE)
    found["gpt step"] = against_eager(
        lambda compiled: training(compiled(writer), letters, list(writer.parameters()))
    )
    return found


if __name__ == "__main__":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    torch.set_num_threads(1)
    print(json.dumps(measure(Path(sys.argv[1]))))
