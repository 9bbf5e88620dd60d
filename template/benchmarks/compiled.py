"""Measures ``torch.compile``: its time divided by eager's, on this device and on the CPU.

``python benchmarks/compiled.py`` compiles each program for both devices, and alternates between
compiled and eager code. ``--mode`` chooses another mode, such as ``reduce-overhead``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from names import DEVICE
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional

ROUNDS, SECONDS = 15, 0.05
"""Number of bursts of each, and the approximate duration of one."""
Program = Callable[[], object]


def elementwise(x: Tensor) -> Tensor:
    """Twenty cheap operators."""
    for _ in range(4):
        x = torch.relu(x * 1.5 + 0.25) - x.abs() * 0.5
    return x


def functions(x: Tensor) -> Tensor:
    """Twenty operators, some of which are transcendental functions."""
    for _ in range(4):
        x = torch.sigmoid(x) * torch.tanh(x) + torch.exp(-x.abs())
    return x


def norm(x: Tensor) -> Tensor:
    """Layer norm, GELU and a sum."""
    return functional.gelu(functional.layer_norm(x, x.shape[-1:])) + x


def softmax(x: Tensor) -> Tensor:
    """A softmax of scaled rows."""
    return (x * 0.5).softmax(-1)


def dropout(x: Tensor) -> Tensor:
    """Random numbers, and arithmetic on them."""
    return functional.dropout(torch.relu(x) + 1, 0.1)


class Block(nn.Module):
    """A transformer's block, without its mask."""

    def __init__(self, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.taken, self.given = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Apply attention, then two layers."""
        q, k, v = (
            each.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for each in self.taken(self.norms[0](x)).chunk(3, -1)
        )
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.given(attended.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


def perceptron() -> nn.Module:
    """Three small layers."""
    layers = [nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
    return nn.Sequential(*layers)


def blocks() -> nn.Module:
    """Two blocks of a transformer."""
    return nn.Sequential(Block(), Block())


@dataclass(frozen=True)
class Case:
    """A function of one tensor, or a module that is trained for a step."""

    name: str
    shape: tuple[int, ...]
    function: Callable[[Tensor], Tensor] | None = None
    module: Callable[[], nn.Module] | None = None

    def program(self, device: str, mode: str | None) -> Program:
        """Return the function to time; ``mode`` is None for eager."""
        torch.manual_seed(0)
        x = torch.randn(self.shape, device=device)
        code = self.function or (self.module or nn.Identity)().to(device)
        called = code if mode is None else torch.compile(code, mode=mode)
        if self.function is not None:
            return lambda: called(x)
        assert isinstance(code, nn.Module)
        optimizer = torch.optim.SGD(code.parameters(), lr=1e-3)

        def step() -> None:
            optimizer.zero_grad()
            called(x).square().mean().backward()
            optimizer.step()

        return step


CASES = (
    Case("twenty operators", (1024, 1024), elementwise),
    Case("twenty operators and functions", (1024, 1024), functions),
    Case("layer norm, GELU, sum", (1024, 1024), norm),
    Case("softmax of 4096", (256, 4096), softmax),
    Case("dropout", (1024, 1024), dropout),
    Case("MLP step, 64 x 256", (64, 256), module=perceptron),
    Case("transformer step, 4 x 64 x 128", (4, 64, 128), module=blocks),
)


def ratio(case: Case, device: str, mode: str) -> float:
    """Return the time of compiled code divided by that of eager code."""
    synchronize = torch.get_device_module(device).synchronize
    programs = [case.program(device, None), case.program(device, mode)]
    for _ in range(4):  # compiles, and captures
        for program in programs:
            program()
    synchronize()

    def burst(program: Program, calls: int) -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            program()
        synchronize()
        return (time.perf_counter() - begin) / calls

    calls = max(1, round(SECONDS / burst(programs[0], 3)))
    times = [[burst(program, calls) for program in programs] for _ in range(ROUNDS)]
    return median(compiled / eager for eager, compiled in times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", default="default", help="of torch.compile")
    mode = parser.parse_args().mode
    table = Table(title=f"compiled / eager, mode {mode}")
    for heading in ("", DEVICE, "cpu"):
        table.add_column(heading, justify="right" if heading else "left")
    for case in CASES:
        figures = (f"{ratio(case, device, mode):.2f}" for device in (DEVICE, "cpu"))
        table.add_row(case.name, *figures)
    Console().print(table)


if __name__ == "__main__":
    main()
