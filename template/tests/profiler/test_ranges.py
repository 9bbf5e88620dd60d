"""``emit_ranges`` on a device without ranges."""

from __future__ import annotations

from pathlib import Path

import torch
from backend import DEVICE
from changed_device import without_group
from support import needs, run_python

pytestmark = needs(torch.float32)


def test_emit_ranges_raises_on_a_device_without_ranges(tmp_path: Path) -> None:
    run_python(
        f"""
        import torch
        try:
            with torch.{DEVICE}.emit_ranges():
                raise AssertionError("the device has ranges")
        except NotImplementedError as error:
            assert "functions of ranges.h" in str(error), error
        """,
        without_group("ranges", tmp_path),
    )
