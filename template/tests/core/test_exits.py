"""A process may end whatever its devices are doing, and ends with its own status."""

from __future__ import annotations

import pytest
from core.exits import ENDS, end


@pytest.mark.parametrize("how", ENDS)
def test_a_process_ends_while_its_devices_work(how: str) -> None:
    end(how)
