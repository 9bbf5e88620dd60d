"""The program of test_exits.py, a hundred times, with ``-m full``."""

from __future__ import annotations

import pytest
from core.exits import end

pytestmark = pytest.mark.full


@pytest.mark.parametrize("_", range(100))
def test_a_process_ends_while_its_devices_work(_: int) -> None:
    end("returns")
