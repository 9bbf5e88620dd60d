"""One fixture for the objects that a test makes on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


class Make:
    """`make.stream()` calls the fixture `make_stream`, and so on."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def __getattr__(self, name: str) -> Callable[..., Any]:
        maker: Callable[..., Any] = self._request.getfixturevalue(f"make_{name}")
        return maker


@pytest.fixture
def make(request: pytest.FixtureRequest, make_event: object) -> Make:
    """Makes streams, events, buffers and others. Events are destroyed last."""
    return Make(request)
