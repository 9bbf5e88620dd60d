"""The layer `validate`: one message for each wrong call, none for correct ones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from device_library import needs, needs_property
from making import Make
from simulator_knobs import Knobs

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def validated(api: ModuleType, restored_layers: None) -> None:
    api.set_layers(["validate"])


@pytest.fixture
def views(api: ModuleType, make: Make) -> Callable[..., Any]:
    """Views of one buffer of 256 bytes each, float32 by default."""

    def view(
        *sizes: int, strides: tuple[int, ...] | None = None, offset: int = 0, buffer: Any = None
    ) -> Any:
        steps = strides or [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
        owner = buffer if buffer is not None else make.buffer(256)
        return owner.view(offset, api.DType.float32, list(sizes), list(steps))

    return view


class Program:
    """The arguments of wrong calls: memory, streams and events, some of them destroyed."""

    def __init__(self, api: ModuleType) -> None:
        self.api, self.no_device = api, api.device_count()
        self.stream, self.gone_stream = api.create_stream(0, 0), api.create_stream(0, 0)
        self.event, self.gone_event = api.create_event(0, False), api.create_event(0, False)
        self.memory, self.gone = api.allocate(0, 128), api.allocate(0, 192)
        self.host = api.allocate_host(64)
        api.deallocate(0, self.gone)
        api.destroy_stream(self.gone_stream)
        api.destroy_event(self.gone_event)

    def fill(self, address: int, size: int) -> None:
        self.api.fill_bytes(self.stream, address, 0, size)

    def copy(self, to: int, source: int, size: int, device: int = 0) -> None:
        """Copies bytes of device 0. `device` is the device of `to`."""
        self.api.copy_bytes(self.stream, (to, device), (source, 0), size)

    def end(self) -> None:
        self.api.destroy_stream(self.stream)
        self.api.destroy_event(self.event)
        self.api.deallocate(0, self.memory)
        self.api.deallocate_host(self.host)


Call = Callable[[Program], object]

# Wrong calls by their message.
BROKEN: dict[str, list[Call]] = {
    "contract of allocate: there are no bytes to allocate": [lambda p: p.api.allocate(0, 0)],
    "no bytes to allocate": [lambda p: p.api.allocate_host(0)],
    "no bytes to fill": [lambda p: p.fill(p.memory, 0)],
    "no bytes to copy": [lambda p: p.copy(p.memory, p.memory, 0)],
    "there is no device -1, only [0-9]+ from 0 on": [lambda p: p.api.allocate(-1, 64)],
    "there is no device [1-9]": [
        lambda p: p.api.allocate(p.no_device, 64),
        lambda p: p.api.properties(p.no_device),
        lambda p: p.api.create_stream(p.no_device, 0),
        lambda p: p.api.create_event(p.no_device, False),
    ],
    "was given back, an allocation of 192 bytes of device 0": [
        lambda p: p.fill(p.gone + 64, 64),
        lambda p: p.copy(p.gone, p.gone + 64, 64),
    ],
    "reaches 32 bytes beyond an allocation of 128 bytes of device 0": [
        lambda p: p.fill(p.memory + 64, 96)
    ],
    "beyond .* the host": [lambda p: p.copy(p.host, p.memory, 128, p.api.HOST)],
    "to and from share 48 of the 64 bytes": [lambda p: p.copy(p.memory, p.memory + 16, 64)],
    "stream 0x[0-9a-f]+ was destroyed": [
        lambda p: p.api.query_stream(p.gone_stream),
        lambda p: p.api.synchronize(p.gone_stream),
        lambda p: p.api.record(p.event, p.gone_stream),
    ],
    "event 0x[0-9a-f]+ was destroyed": [
        lambda p: p.api.record(p.gone_event, p.stream),
        lambda p: p.api.wait(p.stream, p.gone_event),
        lambda p: p.api.query_event(p.gone_event),
    ],
}


@pytest.mark.parametrize(
    ("call", "says"), [(call, says) for says, calls in BROKEN.items() for call in calls]
)
def test_a_violation_is_refused(api: ModuleType, refuses: Function, call: Call, says: str) -> None:
    program = Program(api)
    refuses(call, program, says=says)
    program.copy(program.memory, program.memory + 64, 64)
    api.synchronize(program.stream)
    program.end()


# --- Memory ---


def test_allocating_scratch_memory_calls_the_library(simulator: Knobs, run_child: Function) -> None:
    code = """
import _device as api
buffer = api.Buffer(0, 64)
print("launch", flush=True)
api.fill(api.default_stream(0), buffer.view(0, api.DType.float32, [4], [1]), 2.0)
"""
    done = run_child(code, DEVICE_LAYERS="validate,trace", TRACE="device", SIMULATOR_SEED="1")
    assert done.returncode == 0, done.stderr
    calls = [line.partition("] ")[2].partition("(")[0] for line in done.stderr.splitlines()]
    within = calls[calls.index("record") - 1 :][:4]
    assert within == ["create_event", "record", "destroy_event", "allocate"]


def test_a_second_deallocate_does_not_reach_the_device(run_child: Function) -> None:
    code = """
import _device
address, host = _device.allocate(0, 64), _device.allocate_host(64)
_device.deallocate(0, address)
_device.deallocate(0, address)
_device.deallocate_host(host)
_device.deallocate_host(host)
_device.deallocate(0, _device.allocate(0, 64) + 16)
_device.deallocate(0, _device.allocate_host(64))
_device.deallocate_host(_device.allocate(0, 32))
_device.deallocate(0, 0)
print("alive")
"""
    done = run_child(code, DEVICE_LAYERS="validate")
    assert done.stdout == "alive\n"
    sentences = [
        "contract of deallocate: address 0x.* was given back, an allocation of 64 bytes of device 0",
        "contract of deallocate_host: .* was given back, an allocation of 64 bytes of the host",
        "16 bytes inside an allocation of 64 bytes of device 0",
        "is in memory of the host, not of device 0",
        "is in memory of device 0, not of the host",
        "contract of deallocate: the address is null",
    ]
    lines = done.stderr.splitlines()
    assert len(lines) == len(sentences)
    for line, sentence in zip(lines, sentences, strict=True):
        assert re.search(sentence, line), line


@pytest.fixture
def addresses_differ(api: ModuleType, second_device: int) -> None:
    """Skips a test that needs different addresses on different devices."""
    mine, others = api.allocate(0, 64), api.allocate(second_device, 64)
    kinds = {api.describe(0, others).kind, api.describe(second_device, mine).kind}
    api.deallocate(0, mine)
    api.deallocate(second_device, others)
    if kinds != {api.MemoryKind.UNKNOWN}:
        pytest.skip("devices use the same addresses")


def test_memory_of_another_device_is_refused(
    api: ModuleType, refuses: Function, addresses_differ: None, second_device: int, stream: Any
) -> None:
    address = api.allocate(second_device, 64)
    says = f"is in memory of device {second_device}, not of device 0"
    refuses(api.fill_bytes, stream, address, 0, 64, says=says)
    mine = api.allocate(0, 64)
    refuses(api.copy_bytes, stream, (mine, 0), (address, 0), 64, says=f"from {hex(address)} {says}")
    wrong = "the stream is of device 0, but the copy goes from"
    to, source = (address, second_device), (address, second_device)
    refuses(api.copy_bytes, stream, to, source, 64, says=wrong)
    api.deallocate(0, mine)
    api.deallocate(second_device, address)


# --- Streams and events ---


def test_a_second_destroy_does_not_reach_the_device(run_child: Function) -> None:
    code = """
import _device
stream, event = _device.create_stream(0, 0), _device.create_event(0, False)
for _ in range(2):
    _device.destroy_stream(stream)
    _device.destroy_event(event)
_device.destroy_stream(_device.default_stream(0))
_device.synchronize(_device.default_stream(0))
print("alive")
"""
    done = run_child(code, DEVICE_LAYERS="validate")
    assert done.stdout == "alive\n"
    first, second, third = done.stderr.splitlines()
    assert "contract of destroy_stream: stream" in first
    assert "was destroyed" in first
    assert "contract of destroy_event: event" in second
    assert "the default stream is the library's" in third


def test_an_event_is_recorded_on_streams_of_its_device(
    api: ModuleType, refuses: Function, second_device: int, stream: Any, make: Make
) -> None:
    event = make.event(second_device)
    says = f"the event is of device {second_device}, the stream of device 0"
    refuses(api.record, event, stream, says=says)


def test_elapsed_time_is_of_two_timed_events_of_a_device(
    api: ModuleType, refuses: Function, stream: Any, make: Make
) -> None:
    needs_property("event_timing")
    timed, untimed = make.event(timing=True), make.event()
    for event in (timed, untimed):
        api.record(event, stream)
        api.synchronize(event)
    refuses(api.elapsed_ms, untimed, timed, says="start was created without timing")
    refuses(api.elapsed_ms, timed, untimed, says="end was created without timing")
    if api.device_count() > 1:
        says = "start is of device 0, end of device 1"
        refuses(api.elapsed_ms, timed, make.event(1, timing=True), says=says)


# --- Launches ---


def test_a_launch_names_the_argument_and_its_view(
    api: ModuleType, refuses: Function, views: Function, stream: Any, make: Make
) -> None:
    needs("unary", "fill")
    out, operation, params = views(8), api.UnaryOp.neg, api.UnaryParams()
    says = r"in float32 \(4\) is not of the sizes of out float32 \(8\), in unary\(kNeg, "
    refuses(api.unary, stream, operation, out, views(4), params, says=says)
    buffer = make.buffer(256)
    first, behind = views(8, buffer=buffer), views(8, buffer=buffer, offset=16)
    says = "in .* overlaps a part of out"
    refuses(api.unary, stream, operation, first, behind, params, says=says)
    refuses(api.fill, stream, views(8, strides=(0,)), 1, says=r"strides \(0\) overlaps itself")
    thrice = views(3, 3, strides=(1, 1))
    refuses(api.fill, stream, thrice, 1, says="out .* overlaps itself")
    refuses(api.fill, stream, views(0), 1, says=r"out float32 \(0\) is empty")


def test_the_address_of_a_random_state_is_checked(
    api: ModuleType, refuses: Function, views: Function, stream: Any
) -> None:
    needs("random")
    address = api.allocate(0, 8)
    short, gone = api.PhiloxState(1, 0, address), "was given back, an allocation of 8 bytes"
    arguments = (stream, api.RandomOp.uniform, views(8), short, 0.0, 1.0)
    refuses(api.random, *arguments, says="philox.address 0x.* reaches 8 bytes beyond")
    api.deallocate(0, address)
    refuses(api.random, *arguments, says=gone)


def test_a_launch_on_another_devices_memory_is_refused(
    api: ModuleType,
    refuses: Function,
    addresses_differ: None,
    second_device: int,
    views: Function,
    stream: Any,
    make: Make,
) -> None:
    needs("fill")
    view = views(8, buffer=make.buffer(64, second_device))
    says = f"out .* is in memory of device {second_device}, not of device 0"
    refuses(api.fill, stream, view, 1, says=says)


def test_a_launch_names_the_device_of_its_stream(
    api: ModuleType, refuses: Function, second_device: int, views: Function, stream: Any
) -> None:
    needs("fill")
    says = "a launch names another device than its stream's"
    refuses(partial(api.fill, device=second_device), stream, views(8), 1, says=says)


def test_outputs_do_not_overlap_each_other(
    api: ModuleType, refuses: Function, stream: Any, make: Make
) -> None:
    needs("arg_reduce")
    buffer, source = make.buffer(256), make.buffer(256)
    values = buffer.view(0, api.DType.float32, [1], [1])
    indices = buffer.view(0, api.DType.int64, [1], [1])
    table = source.view(0, api.DType.float32, [8], [1])
    extreme, says = api.ArgReduceOp.max, r"overlaps (values|indices) "
    refuses(api.arg_reduce, stream, extreme, values, indices, table, 0, says=says)
    apart = buffer.view(64, api.DType.int64, [1], [1])
    refuses(api.arg_reduce, stream, extreme, values, apart, table, 1, says="no such dimension")


def test_the_bias_of_a_matmul_may_be_its_output(
    api: ModuleType, refuses: Function, views: Function, stream: Any, make: Make
) -> None:
    needs("matmul")
    buffer = make.buffer(256)
    out, a, b = views(1, 4, 4, buffer=buffer), views(1, 4, 2), views(1, 2, 4)
    params = api.MatmulParams()
    params.beta, params.bias = 1, out
    api.matmul(stream, out, a, b, params)
    params.bias = views(1, 4, 4, buffer=buffer, offset=16)
    refuses(api.matmul, stream, out, a, b, params, says="bias overlaps a part of out")
    api.synchronize(stream)


# --- Correct calls ---


def test_a_correct_program_raises_no_error(run_child: Function) -> None:
    code = """
import _device as d
stream, event = d.create_stream(0, 0), d.create_event(0, False)
address, host = d.allocate(0, 256), d.allocate_host(256)
d.fill_bytes(stream, address, 7, 256)
d.copy_bytes(stream, (host, d.HOST), (address, 0), 256)
d.record(event, stream)
d.wait(d.default_stream(0), event)
d.synchronize(event)
buffer = d.Buffer(0, 64)
d.fill(stream, buffer.view(0, d.DType.float32, [4, 4], [4, 1]), 2.0)
d.synchronize(stream)
assert len(buffer.read()) == 64
assert d.query_event(event) is d.Progress.DONE
del buffer
d.deallocate(0, address)
d.deallocate_host(host)
d.destroy_event(event)
d.destroy_stream(stream)
again = d.create_stream(0, 0)
d.synchronize(again)
d.destroy_stream(again)
"""
    done = run_child(code, DEVICE_LAYERS="validate")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_earlier_allocations_are_looked_up_in_the_device(
    api: ModuleType, refuses: Function, stream: Any
) -> None:
    api.set_layers([])
    address = api.allocate(0, 64)
    api.set_layers(["validate"])
    api.fill_bytes(stream, address, 1, 64)
    beyond = api.describe(0, address).bytes + 1
    refuses(api.fill_bytes, stream, address, 1, beyond, says="reaches 1 bytes beyond an allocation")
    api.synchronize(stream)
    api.deallocate(0, address)
