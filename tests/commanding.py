"""How a run of the `torchsmith` command ends, as the tests see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it reported."""
        return json.loads(self.out)


Torchsmith = Callable[..., Ended]
