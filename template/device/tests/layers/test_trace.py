"""The layer `trace`: a line for each call of the device."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from device_library import needs

CODE = """
import _device as d
stream, event = d.create_stream(0, 0), d.create_event(0, False)
address, host = d.allocate(0, 256), d.allocate_host(128)
d.fill_bytes(stream, address, 7, 256)
d.copy_bytes(stream, (host, d.HOST), (address, 0), 128)
d.record(event, stream)
d.wait(d.default_stream(0), event)
d.copy_bytes(d.default_stream(0), (address, 0), (address + 64, 0), 16)
d.synchronize(d.default_stream(0))
d.query_stream(stream)
d.deallocate(0, address)
buffer = d.Buffer(0, 64)
view = buffer.view(0, d.DType.float32, [2, 3], [3, 1])
d.fill(stream, view, 2.0)
d.copy(stream, view, buffer.view(0, d.DType.float32, [2, 3], [1, 2]), probe=True)
try:
    d.allocate(0, 1 << 60)
except MemoryError:
    pass
"""


@pytest.fixture
def trace(run_child: Callable[..., Any]) -> Callable[..., list[str]]:
    """The output with these settings."""

    def run(**variables: str) -> list[str]:
        done = run_child(CODE, **variables)
        assert done.returncode == 0, done.stderr
        return str(done.stderr).splitlines()

    return run


def one(lines: list[str], *parts: str) -> str:
    """The only line that contains all of these."""
    (line,) = (line for line in lines if all(part in line for part in parts))
    return line


def test_nothing_is_printed_without_the_layer(trace: Callable[..., list[str]]) -> None:
    assert trace(TRACE="", DEVICE_LAYERS="") == []


def test_a_category_enables_the_layer(trace: Callable[..., list[str]]) -> None:
    lines = trace(TRACE="copies")
    assert "-> cpu" in one(lines, "128 bytes")
    assert "default stream" in one(lines, "16 bytes")
    assert "fill_bytes(stream 0x" in one(lines, ", 7, 256)")
    assert not any("create_stream" in line or "allocate" in line for line in lines)


def test_launches_print_family_views_operator_and_answer(trace: Callable[..., list[str]]) -> None:
    needs("fill")
    lines = trace(TRACE="launches")
    line = one(lines, "fill(")
    assert "fill(float32 (2, 3), 2)" in line
    assert "the operation under test" in line
    assert "  done" in line or "  unsupported: " in line
    assert "with strides (1, 2)" in one(lines, "probe")
    assert not any("bytes" in line for line in lines)


@pytest.mark.parametrize("variable", [{"TRACE": "device"}, {"DEVICE_LAYERS": "trace"}])
def test_all_calls_of_the_device_are_printed(
    trace: Callable[..., list[str]], variable: dict[str, str]
) -> None:
    lines = trace(**variable)
    assert "-> stream 0x" in one(lines, "create_stream(0, 0)")
    assert "-> event 0x" in one(lines, "create_event(0, false)")
    assert "-> 0x" in one(lines, "] allocate(0, 256)")
    assert one(lines, "wait(stream")
    assert one(lines, "record(event")
    assert one(lines, "synchronize_stream(")
    address = one(lines, "] allocate(0, 256)").rpartition("-> ")[2]
    assert any(f"] deallocate(0, {address})" in line for line in lines)
    assert "  failed: " in one(lines, f"allocate(0, {1 << 60})")
    assert not any("query_stream" in line or "describe" in line for line in lines)


def test_an_unknown_category_is_refused(api: ModuleType, run_child: Callable[..., Any]) -> None:
    variable = f"{api.ENV_PREFIX}_TRACE"
    done = run_child("import _device", TRACE="copies,everything")
    assert done.returncode != 0
    line = one(done.stderr.splitlines(), "ImportError")
    assert line.startswith(f"ImportError: {variable}=copies,everything: 'everything' is not a")
    assert line.endswith("choose from ops, memory, copies, launches, device")
