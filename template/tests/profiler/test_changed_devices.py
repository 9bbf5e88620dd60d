"""Profiles of a device without records, and of one with a name that JSON must escape."""

from __future__ import annotations

from pathlib import Path

from backend import DEVICE
from changed_device import changed_device, without_group
from profiler.traces import RECORDS
from support import run_python

pytestmark = RECORDS


def test_a_device_without_records_warns_once(tmp_path: Path) -> None:
    result = run_python(
        f"""
        import torch
        from torch.profiler import ProfilerActivity, profile
        values = torch.ones(10, device="{DEVICE}")
        for _ in range(2):
            with profile(
                activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
            ) as profiled:
                values + values
            assert [e.key for e in profiled.key_averages()] == ["aten::add"]
        """,
        without_group("profiling", tmp_path),
    )
    assert result.stderr.count("lacks a function of profiling.h") == 1


def test_a_device_name_with_quotation_marks_is_escaped_in_the_trace(tmp_path: Path) -> None:
    run_python(
        f"""
        import json, torch
        from torch.profiler import ProfilerActivity, profile
        values = torch.ones(10, device="{DEVICE}")
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiled:
            values + values
        profiled.export_chrome_trace({str(tmp_path / "trace.json")!r})
        with open({str(tmp_path / "trace.json")!r}) as file:
            (first, *_) = json.load(file)["deviceProperties"]
        assert first["name"] == 'a "device"\\\\ of\\ttests', first
        """,
        changed_device(Path(__file__).with_name("quoted_name.cpp"), tmp_path),
    )
