from __future__ import annotations

from collections.abc import Iterator

import pytest

from speed import sped_up


@pytest.fixture(autouse=True)
def fast_renders(request: pytest.FixtureRequest) -> Iterator[None]:
    """Render faster, but where it is tested that this changes no byte."""
    if request.path.name == "test_reproducible.py":
        yield
    else:
        with sped_up():
            yield
