"""Work that fails after its operator has returned: the threads that raise it, and the message."""

from __future__ import annotations

import re
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from core.failures import Failure, origin, succeed
from support import is_simulator, needs, needs_two_devices, reports_errors, run_python

pytestmark = [needs(torch.float32, torch.int64), pytest.mark.native(like=succeed)]

WAITS: dict[str, Callable[[torch.Stream, torch.Tensor], Any]] = {
    "stream": lambda stream, result: stream.synchronize(),
    "event": lambda stream, result: stream.record_event().synchronize(),
    "device": lambda stream, result: backend.synchronize(stream.device),
    "accelerator": lambda stream, result: torch.accelerator.synchronize(stream.device),
    "item": lambda stream, result: result[0].item(),
    "cpu": lambda stream, result: result.cpu(),
    "copy_": lambda stream, result: torch.empty(2).copy_(result),
    "tolist": lambda stream, result: result.tolist(),
}


def in_another_thread(function: Callable[[], Any]) -> RuntimeError | None:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).exception()  # type: ignore[return-value]


@pytest.mark.parametrize("wait", WAITS)
def test_a_failure_is_raised_once_on_each_thread(wait: str, failure: Failure) -> None:
    stream = backend.Stream()
    pattern = failure.message + ".*" + failure.origin(stream)

    def wait_twice() -> None:
        with backend.stream(stream):
            with pytest.raises(RuntimeError, match=pattern):
                WAITS[wait](stream, result)
            for again in WAITS:
                WAITS[again](stream, result)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(backend.default_stream().synchronize).result()
        result = failure.on(stream)
        assert re.search(pattern, str(backend.last_failure(stream)))
        wait_twice()
        assert backend.last_failure(stream) is None
        assert pool.submit(wait_twice).exception() is None


def test_the_next_failure_is_raised_too(failure: Failure) -> None:
    stream = backend.Stream()
    for _ in range(3):
        result = failure.on(stream)
        with backend.stream(stream):
            with pytest.raises(RuntimeError, match=failure.message):
                result.cpu()
            result.cpu()


@pytest.mark.parametrize("wait", WAITS)
def test_a_thread_that_starts_later_raises_nothing(wait: str, failure: Failure) -> None:
    stream = backend.Stream()
    result = failure.on(stream)
    with pytest.raises(RuntimeError, match=failure.message):
        stream.synchronize()

    def read() -> None:
        with backend.stream(stream):
            assert backend.last_failure(stream) is None
            WAITS[wait](stream, result)

    def compute() -> None:
        with backend.stream(stream):
            assert (torch.ones(2, device=DEVICE) + 1).tolist() == [2, 2]
            result.cpu()

    assert in_another_thread(read) is None
    assert in_another_thread(compute) is None


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_a_backward_pass_raises_on_the_calling_thread(failure: Failure) -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, values: torch.Tensor) -> torch.Tensor:
            return values.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            failure.on(backend.current_stream())
            gradient.cpu()
            return gradient

    for _ in range(2):
        values = torch.ones(2, device=DEVICE, requires_grad=True)
        with pytest.raises(RuntimeError, match=failure.message):
            Fails.apply(values).sum().backward()
        values.cpu()
    with torch.autograd.detect_anomaly(check_nan=True):
        values.sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1, 1]


@pytest.mark.parametrize("monitor", WAITS)
def test_a_failure_caught_on_one_thread_is_raised_on_another(
    monitor: str, failure: Failure
) -> None:
    stream = backend.Stream()
    result = failure.on(stream)
    logged = []

    def log() -> None:
        with backend.stream(stream):
            try:
                WAITS[monitor](stream, result)
            except RuntimeError as error:
                logged.append(error)

    thread = threading.Thread(target=log)
    thread.start()
    thread.join()
    assert logged
    with backend.stream(stream), pytest.raises(RuntimeError, match=failure.message):
        result.cpu()


def test_a_failure_is_acknowledged_for_one_or_all_streams(failure: Failure) -> None:
    streams = [backend.Stream(), backend.Stream()]
    for stream in streams:
        failure.on(stream)
    backend.acknowledge_failure(streams[0])
    streams[0].synchronize()
    assert backend.last_failure() is not None
    with pytest.raises(RuntimeError, match=failure.origin(streams[1])):
        streams[1].synchronize()
    failure.on(streams[0])
    backend.acknowledge_failure()
    assert backend.last_failure() is None
    backend.synchronize()
    assert in_another_thread(backend.synchronize) is None


@pytest.mark.parametrize("function", ["acknowledge_failure", "last_failure"])
def test_a_stream_of_another_device_is_refused(function: str) -> None:
    with pytest.raises(ValueError, match=f"expected a stream of a {DEVICE} device, got 7"):
        getattr(backend, function)(7)


def test_a_reset_restores_a_lost_device(failure: Failure) -> None:
    if not failure.layers:
        pytest.skip("only the layer `faults` loses devices")
    kept = torch.ones(2, device=DEVICE)
    backend.synchronize()
    backend._C.faults.inject("launch", code="device_lost", later=True)
    kept + 1
    for _ in range(2):
        with pytest.raises(RuntimeError, match=rf"is lost: .*torch\.{DEVICE}\.reset_device\(\)"):
            backend.synchronize()
        backend.acknowledge_failure()
    backend.reset_device()
    backend.synchronize()
    assert (kept.fill_(3) + 1).tolist() == [4, 4]


@pytest.mark.parametrize("wait", WAITS)
def test_a_stream_that_waits_for_an_event_inherits_the_failure(wait: str, failure: Failure) -> None:
    failing, waiting = backend.Stream(), backend.Stream()
    result = failure.on(failing)
    waiting.wait_stream(failing)
    with backend.stream(waiting):
        derived = result + 1
        with pytest.raises(RuntimeError, match=failure.origin(failing)):
            WAITS[wait](waiting, derived)
        WAITS[wait](waiting, derived)
    failing.synchronize()


def test_a_failure_caught_on_another_thread_is_still_inherited(failure: Failure) -> None:
    failing, waiting = backend.Stream(), backend.Stream()
    failure.on(failing)
    assert in_another_thread(failing.synchronize) is not None
    waiting.wait_stream(failing)
    with pytest.raises(RuntimeError, match=failure.origin(failing)):
        waiting.synchronize()
    failing.synchronize()


@pytest.mark.parametrize("was_raised", [False, True])
def test_acknowledging_does_not_clear_streams_that_waited(
    failure: Failure, was_raised: bool
) -> None:
    failing, waiting = backend.Stream(), backend.Stream()
    failure.on(failing)
    if was_raised:
        assert in_another_thread(failing.synchronize) is not None
    waiting.wait_stream(failing)
    backend.acknowledge_failure(failing)
    failing.synchronize()
    with pytest.raises(RuntimeError, match=failure.origin(failing)):
        waiting.synchronize()


def test_waits_for_other_work_do_not_raise(failure: Failure) -> None:
    failing, other = backend.Stream(), backend.Stream()
    before = other.record_event()
    failure.on(failing)
    before.synchronize()
    other.synchronize()
    with pytest.raises(RuntimeError, match=failure.message):
        failing.synchronize()


@needs_two_devices
def test_a_copy_to_another_device_passes_on_a_failure(failure: Failure) -> None:
    stream = backend.Stream(0)
    result = failure.on(stream)
    with backend.stream(stream):
        there = result.to(f"{DEVICE}:1")
    with pytest.raises(RuntimeError, match=failure.origin(stream)):
        there.cpu()
    there.cpu()
    stream.synchronize()


def test_queries_and_allocations_neither_raise_nor_clear_a_failure(failure: Failure) -> None:
    stream = backend.Stream()
    result = failure.on(stream)
    event = stream.record_event()
    result.record_stream(stream)
    shared = torch.ones(1000, device=DEVICE)
    shared.record_stream(stream)
    pinned = torch.ones(1000).pin_memory()
    with backend.stream(stream):
        copy = pinned.to(DEVICE, non_blocking=True)
    del shared, pinned, copy
    for _ in range(10):
        stream.query()
        assert event.query()
        torch.empty(1000, device=DEVICE)
        torch.empty(1000, pin_memory=True)
    backend.empty_cache()
    backend.empty_host_cache()
    with pytest.raises(RuntimeError, match=failure.message):
        event.synchronize()


@needs(torch.int32)
@reports_errors
@pytest.mark.parametrize(
    ("operator", "divide"),
    [
        ("floor_divide", lambda a, b: a // b),
        ("remainder.Tensor", lambda a, b: a % b),
        ("fmod.Tensor", lambda a, b: torch.fmod(a, b)),
        ("div.Tensor_mode", lambda a, b: torch.div(a, b, rounding_mode="trunc")),
        ("remainder_.Tensor", lambda a, b: a.remainder_(b)),
    ],
)
def test_an_integer_division_by_zero_names_its_operator(
    operator: str, divide: Callable[..., torch.Tensor]
) -> None:
    ones = torch.ones(3, dtype=torch.int32, device=DEVICE)
    zeros = torch.zeros(3, dtype=torch.int32, device=DEVICE)
    result = divide(ones, zeros)
    torch.empty(3, device=DEVICE)
    expected = "ZeroDivisionError.*" + origin(operator, backend.default_stream())
    with pytest.raises(RuntimeError, match=expected):
        result.cpu()


def test_each_stream_has_its_own_failure(failure: Failure) -> None:
    streams = [backend.Stream(), backend.Stream()]
    for stream in streams:
        failure.on(stream)
    for stream in streams:
        with pytest.raises(RuntimeError, match=failure.origin(stream)):
            stream.synchronize()


CAUGHT = "try:\n    backend.synchronize()\nexcept RuntimeError:\n    pass\n"
IN_A_THREAD = """
import threading
thread = threading.Thread(target=caught)
thread.start()
thread.join()
"""
ACKNOWLEDGED = """
while backend.last_failure() is None:
    pass
backend.acknowledge_failure()
"""
ENDS: dict[str, tuple[str, int, bool]] = {
    "nobody waits": ("", 1, True),
    "a status of its own": ("raise SystemExit(7)\n", 7, True),
    "raised": (CAUGHT, 0, False),
    "a monitor": ("def caught():\n" + textwrap.indent(CAUGHT, "    ") + IN_A_THREAD, 1, True),
    "acknowledged": (ACKNOWLEDGED, 0, False),
}
"""What a process does after its failed work, its status, and whether it names the failure."""


@pytest.mark.parametrize(("and_then", "status", "is_named"), ENDS.values(), ids=ENDS)
def test_the_exit_status_after_failed_work(
    and_then: str, status: int, is_named: bool, failure: Failure
) -> None:
    code = f"""
import torch
backend = torch.{DEVICE}
{failure.code}
fail(backend.Stream())
print("done")
"""
    ended = run_python(code + and_then, failure.environment, check=False)
    assert (ended.returncode, ended.stdout) == (status, "done\n")
    told = [failure.message, f"(in aten::{failure.operator} on {DEVICE}:0, stream "]
    assert len(ended.stderr.splitlines()) == is_named, ended.stderr
    assert all(words in ended.stderr for words in told) == is_named


@reports_errors
def test_with_blocking_launches_only_the_operator_raises() -> None:
    if not is_simulator():
        pytest.skip("only the simulator has blocking launches")
    code = f"""
import torch
values = torch.ones(5, device="{DEVICE}")
try:
    values[torch.full((2,), 7, device="{DEVICE}")]
except RuntimeError as error:
    assert "out of bounds" in str(error)
    values.cpu()
"""
    ended = run_python(code, {f"{ENV_PREFIX}_LAUNCH_BLOCKING": "1"})
    assert ended.stderr == ""


def test_the_exit_prints_nothing_after_successful_work() -> None:
    ended = run_python(f"import torch\ntorch.ones(1000, device='{DEVICE}').sort()")
    assert ended.stderr == ""
