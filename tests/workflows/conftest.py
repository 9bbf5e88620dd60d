from __future__ import annotations

import pytest

from rendering import Renderer
from workflows.steps import Checkout


@pytest.fixture(scope="module")
def checkout(render: Renderer, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout of a project with the features `release` and `relay`, which no step may change."""
    return Checkout.of(render, tmp_path_factory.mktemp("github"))
