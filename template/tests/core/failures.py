"""Two ways in which work fails after its operator has returned. Waiting calls raise either."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from backend import DEVICE, ENV_PREFIX, backend


def origin(operator: str, stream: torch.Stream) -> str:
    """Return a pattern of the message part that names the origin of a failure of ``operator``."""
    where = rf"{stream.device}, stream {stream.stream_id}\b"
    return rf"\(in aten::{re.escape(operator)} on {where}"


@dataclass(frozen=True)
class Failure:
    """One way to fail, its message, its operator, and the device layers that it needs."""

    fail: Callable[[torch.Stream], torch.Tensor]
    message: str
    operator: str
    layers: tuple[str, ...] = ()

    def origin(self, stream: torch.Stream) -> str:
        """Return a pattern of the message part that names the origin of the failure."""
        return origin(self.operator, stream)

    def on(self, stream: torch.Stream) -> torch.Tensor:
        """Fail an operator on ``stream``, and return when it has run."""
        result = self.fail(stream)
        while not stream.query():
            pass
        return result

    @property
    def code(self) -> str:
        """Python code that defines ``fail``, for a process with this `environment`."""
        return f"from core.failures import {self.fail.__name__} as fail"

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of a process that fails like this."""
        path = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        return {
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            f"{ENV_PREFIX}_DEVICE_LAYERS": ",".join([*self.layers, *backend.device_layers()]),
        }


def fail_by_index(stream: torch.Stream) -> torch.Tensor:
    with backend.stream(stream):
        return torch.ones(5, device=stream.device)[torch.full((2,), 7, device=stream.device)]


def fail_by_injection(stream: torch.Stream) -> torch.Tensor:
    """Fail a valid addition by the layer `faults`."""
    with backend.stream(stream):
        values = torch.ones(2, device=stream.device)
        backend._C.faults.inject("launch", later=True)
        return values + 1


FAILURES = {
    "wrong index": Failure(
        fail_by_index, "index 7 is out of bounds for a dimension of size 5", "index.Tensor"
    ),
    "injected": Failure(
        fail_by_injection, "injected failure of this launch", "add.Tensor", ("faults",)
    ),
}


def succeed() -> None:
    """Run the operators of the failures without a failure, to see whether they fall back."""
    torch.ones(5, device=DEVICE)[torch.full((2,), 4, device=DEVICE)] + 1
