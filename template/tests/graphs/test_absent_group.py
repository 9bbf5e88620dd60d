"""Captures on a device without graphs."""

from __future__ import annotations

from pathlib import Path

from backend import DEVICE
from changed_device import without_group
from support import run_python


def test_capture_without_graph_functions_raises(tmp_path: Path) -> None:
    code = f"""
        import torch
        values = torch.ones(4, device="{DEVICE}")
        try:
            torch.{DEVICE}.Graph().capture_begin()
        except NotImplementedError as error:
            assert "functions of graphs.h" in str(error), error
        else:
            raise AssertionError("captured")
        assert (values + values).tolist() == [2] * 4
    """
    run_python(code, without_group("graphs", tmp_path))
