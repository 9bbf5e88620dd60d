from __future__ import annotations

import pytest

from rendering import Renderer
from workflows.steps import Checkout


@pytest.fixture(scope="module")
def checkout(render: Renderer, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Return a checkout of a project with `release` and `relay`, which no step may change."""
    return Checkout.of(render, tmp_path_factory.mktemp("github"))
