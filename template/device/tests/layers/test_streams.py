"""The layer `streams` reports unordered uses of memory, and no others."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from device_library import needs
from making import Make

NOTHING_ORDERS = "nothing orders the two"


@pytest.fixture(autouse=True)
def watched(api: ModuleType, restored_layers: None) -> None:
    api.set_layers(["streams"])


@pytest.fixture
def buffer(make: Make) -> Any:
    """256 bytes of device 0."""
    return make.buffer(256)


def whole(api: ModuleType, buffer: Any) -> Any:
    return buffer.view(0, api.DType.float32, [buffer.bytes // 4], [1])


def fill(api: ModuleType, stream: Any, view: Any) -> None:
    if api.fill(stream, view, 1.0) is not None:
        pytest.skip("the device has no kernel that fills")


def copy(api: ModuleType, stream: Any, out: Any, source: Any) -> None:
    if api.copy(stream, out, source) is not None:
        pytest.skip("the device has no kernel that copies")


def use(api: ModuleType, stream: Any, how: str, buffer: Any, make: Make) -> None:
    if how == "writes":
        fill(api, stream, whole(api, buffer))
    else:
        copy(api, stream, whole(api, make.buffer(256)), whole(api, buffer))


@pytest.mark.parametrize(
    ("first", "second"), [("writes", "writes"), ("writes", "reads"), ("reads", "writes")]
)
def test_unordered_uses_of_memory_are_reported(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any, make: Make, first: str, second: str
) -> None:
    use(api, streams[0], first, buffer, make)
    with pytest.raises(api.DeviceError, match=f"{second} memory .* {first}"):
        use(api, streams[1], second, buffer, make)


def test_unordered_reads_are_allowed(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any, make: Make
) -> None:
    for stream in streams:
        use(api, stream, "reads", buffer, make)


def test_arrays_of_a_descriptor_are_read_or_written(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any, make: Make
) -> None:
    def dense(owner: Any) -> Any:
        return owner.view(0, api.DType.float32, [1, 1, 4, 4], [16, 16, 4, 1])

    def params(**arrays: Any) -> Any:
        made = api.AttentionParams()
        made.out, made.logsumexp = dense(make.buffer(64)), logarithms
        for name, array in arrays.items():
            setattr(made, name, array)
        return made

    logarithms = make.buffer(64).view(0, api.DType.float32, [1, 1, 4], [4, 4, 1])
    arrays = [dense(make.buffer(64)) for _ in range(7)]
    for stream in streams:  # it is read here, and written below
        given = params(mask=dense(buffer))
        arrays[:3] = [dense(make.buffer(64)) for _ in range(3)]
        if api.attention_backward(stream, *arrays, given) is not None:
            pytest.skip("the device has no gradients of attention")
    writes = params(grad_mask=dense(buffer))
    arrays[:3] = [dense(make.buffer(64)) for _ in range(3)]
    with pytest.raises(api.DeviceError, match=r"writes memory .* reads"):
        api.attention_backward(streams[0], *arrays, writes)


def test_every_earlier_reader_must_be_ordered(api: ModuleType, make: Make, buffer: Any) -> None:
    readers = [make.stream(), make.stream()]
    for stream in readers:
        use(api, stream, "reads", buffer, make)
    writer, event = make.stream(), api.create_event(0, False)
    api.record(event, readers[1])
    api.wait(writer, event)
    api.destroy_event(event)
    with pytest.raises(api.DeviceError, match=NOTHING_ORDERS):
        fill(api, writer, whole(api, buffer))


def test_an_event_orders_two_streams(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any, make: Make
) -> None:
    event = make.event()
    fill(api, streams[0], whole(api, buffer))
    api.record(event, streams[0])
    api.wait(streams[1], event)
    fill(api, streams[1], whole(api, buffer))


def test_an_event_does_not_order_later_work(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any, make: Make
) -> None:
    event = make.event()
    api.record(event, streams[0])
    fill(api, streams[0], whole(api, buffer))
    api.wait(streams[1], event)
    with pytest.raises(api.DeviceError, match=NOTHING_ORDERS):
        fill(api, streams[1], whole(api, buffer))


def test_order_is_transitive(api: ModuleType, make: Make, buffer: Any) -> None:
    chain = [make.stream() for _ in range(3)]
    fill(api, chain[0], whole(api, buffer))
    for earlier, later in itertools.pairwise(chain):
        event = make.event()
        api.record(event, earlier)
        api.wait(later, event)
    fill(api, chain[2], whole(api, buffer))


@pytest.mark.parametrize("how", ["stream", "device", "event", "is_idle", "is_complete"])
def test_a_wait_of_the_host_orders(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any, make: Make, how: str
) -> None:
    event = make.event()
    fill(api, streams[0], whole(api, buffer))
    api.record(event, streams[0])
    if how == "is_idle":
        while not api.is_idle(streams[0]):
            pass
    elif how == "is_complete":
        while not api.is_complete(event):
            pass
    else:
        api.synchronize({"stream": streams[0], "device": 0, "event": event}[how])
    fill(api, streams[1], whole(api, buffer))


def test_a_query_of_pending_work_does_not_order(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any, gate: Any
) -> None:
    gate.hold(streams[0])
    fill(api, streams[0], whole(api, buffer))
    assert not api.is_idle(streams[0])
    with pytest.raises(api.DeviceError, match=NOTHING_ORDERS):
        fill(api, streams[1], whole(api, buffer))


def test_a_destroyed_streams_work_has_finished(api: ModuleType, stream: Any, buffer: Any) -> None:
    gone = api.create_stream(0, 0)
    fill(api, gone, whole(api, buffer))
    api.destroy_stream(gone)
    fill(api, stream, whole(api, buffer))


def test_a_host_function_comes_after_the_work_before_it(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any, gate: Any
) -> None:
    fill(api, streams[0], whole(api, buffer))
    gate.hold(streams[0])
    gate.wait_until_reached()
    fill(api, streams[1], whole(api, buffer))


def test_parts_of_one_allocation_are_distinguished(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any
) -> None:
    for i, stream in enumerate(streams):
        fill(api, stream, buffer.view(128 * i, api.DType.float32, [32], [1]))
    with pytest.raises(api.DeviceError, match=NOTHING_ORDERS):
        fill(api, streams[0], buffer.view(124, api.DType.float32, [2], [1]))


def test_interleaved_views_are_distinguished(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any, gate: Any
) -> None:
    # A device whose fill needs scratch memory for such views checks which work is complete.
    gate.hold(streams[1])
    for i, stream in enumerate(streams):
        fill(api, stream, buffer.view(4 * i, api.DType.float32, [8, 2], [8, 2]))
    with pytest.raises(api.DeviceError, match=NOTHING_ORDERS):
        fill(api, streams[0], buffer.view(4, api.DType.float32, [8], [8]))


def test_all_outputs_of_a_family_count_as_written(
    api: ModuleType, streams: tuple[Any, Any], make: Make, gate: Any
) -> None:
    # Work whose completion the host has queried is no conflict, and the host checks this when a
    # family needs scratch memory.
    gate.hold(streams[0])
    source, values = whole(api, make.buffer(256)), whole(api, make.buffer(256))
    indices = make.buffer(512).view(0, api.DType.int64, [64], [1])
    if api.sort(streams[0], values, indices, source, 0, False, True) is not None:
        pytest.skip("the device has no kernel that sorts")
    copy(api, streams[1], whole(api, make.buffer(256)), source)
    with pytest.raises(api.DeviceError, match=r"reads memory .* writes"):
        copy(api, streams[1], whole(api, make.buffer(256)), values)
    target = make.buffer(512).view(0, api.DType.int64, [64], [1])
    with pytest.raises(api.DeviceError, match=r"reads memory .* writes"):
        copy(api, streams[1], target, indices)


def test_pinned_memory_is_checked(api: ModuleType, streams: tuple[Any, Any], make: Make) -> None:
    pinned, first, second = make.pinned(64), make.buffer(64), make.buffer(64)
    api.copy_bytes(streams[0], (pinned, api.HOST), (first.address, 0), 64)
    with pytest.raises(api.DeviceError, match="the host's pinned memory"):
        api.copy_bytes(streams[1], (second.address, 0), (pinned, api.HOST), 64)


def test_reallocated_memory_has_no_earlier_uses(
    api: ModuleType,
    streams: tuple[Any, Any],
) -> None:
    address = api.allocate(0, 4096)
    api.fill_bytes(streams[0], address, 1, 4096)
    api.synchronize(streams[0])
    api.deallocate(0, address)
    again = api.allocate(0, 4096)
    api.fill_bytes(streams[1], again, 1, 4096)
    api.synchronize(streams[1])
    api.deallocate(0, again)


def test_the_report_has_streams_functions_and_lines(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any
) -> None:
    def first_writer() -> None:
        fill(api, streams[0], whole(api, buffer))

    def second_writer() -> None:
        api.fill_bytes(streams[1], buffer.address, 0, 16)

    first_writer()
    with pytest.raises(api.DeviceError) as caught:
        second_writer()
    text = str(caught.value)
    assert "fill_bytes on stream" in text
    assert "the operation under test on stream" in text
    assert "of device 0" in text
    assert f"{buffer.address:#x} to {buffer.address + 16:#x}" in text
    earlier, later = text.split("The later work was enqueued here:")
    assert re.search(rf'File "{re.escape(__file__)}", line \d+, in first_writer', earlier)
    assert re.search(rf'File "{re.escape(__file__)}", line \d+, in second_writer', later)


RACE = """
import _device as api
one, other = api.create_stream(0, 0), api.create_stream(0, 0)
address = api.allocate(0, 64)
api.fill_bytes(one, address, 1, 64)
api.fill_bytes(other, address, 2, 64)
api.synchronize(0)
print("went on")
"""


@pytest.mark.parametrize(("how", "goes_on"), [("", False), ("error", False), ("print", True)])
def test_the_variable_selects_an_error_or_a_printed_report(
    run_child: Callable[..., subprocess.CompletedProcess[str]], how: str, goes_on: bool
) -> None:
    child = run_child(RACE, DEVICE_LAYERS="streams", STREAMS=how)
    assert (child.returncode == 0) == goes_on
    assert ("went on" in child.stdout) == goes_on
    assert NOTHING_ORDERS in child.stderr


def test_a_wrong_value_of_the_variable_is_named(
    api: ModuleType, run_child: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    child = run_child("import _device", DEVICE_LAYERS="streams", STREAMS="shout")
    assert child.returncode != 0
    assert f"{api.ENV_PREFIX}_STREAMS=shout" in child.stderr
    assert "error, print" in child.stderr


def test_captured_work_is_not_checked(
    api: ModuleType, streams: tuple[Any, Any], buffer: Any
) -> None:
    needs("begin_capture")
    fill(api, streams[0], whole(api, buffer))
    api.begin_capture(streams[1])
    fill(api, streams[1], whole(api, buffer))
    graph = api.end_capture(streams[1])
    api.synchronize(streams[0])
    api.launch_graph(graph, streams[1])
    api.destroy_graph(graph)
    api.synchronize(streams[1])
