"""Work that fails after its operator has returned: who is told, how often, and in which words."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from core.failures import Failure, origin, succeed
from support import needs, needs_two_devices, reports_errors, run_python

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


@pytest.mark.parametrize("wait", WAITS)
def test_whoever_waits_for_results_is_told_once(wait: str, failure: Failure) -> None:
    stream = backend.Stream()
    result = failure.on(stream)
    with backend.stream(stream):
        pattern = failure.message + ".*" + failure.origin(stream)
        with pytest.raises(RuntimeError, match=pattern):
            WAITS[wait](stream, result)
        for again in WAITS.values():
            again(stream, result)


@pytest.mark.parametrize("wait", WAITS)
def test_who_waits_behind_an_event_is_told(wait: str, failure: Failure) -> None:
    failing, waiting = backend.Stream(), backend.Stream()
    result = failure.on(failing)
    waiting.wait_stream(failing)
    with backend.stream(waiting):
        derived = result + 1
        with pytest.raises(RuntimeError, match=failure.origin(failing)):
            WAITS[wait](waiting, derived)
    failing.synchronize()
    backend.synchronize()


def test_who_waits_for_other_work_is_not_told(failure: Failure) -> None:
    failing, other = backend.Stream(), backend.Stream()
    before = other.record_event()
    failure.on(failing)
    before.synchronize()
    other.synchronize()
    with pytest.raises(RuntimeError, match=failure.message):
        failing.synchronize()


@needs_two_devices
def test_a_failure_travels_with_a_copy_to_another_device(failure: Failure) -> None:
    stream = backend.Stream(0)
    result = failure.on(stream)
    with backend.stream(stream):
        there = result.to(f"{DEVICE}:1")
    with pytest.raises(RuntimeError, match=failure.origin(stream)):
        there.cpu()
    for device in range(2):
        backend.synchronize(device)


def test_asking_and_allocating_neither_tell_nor_forget(failure: Failure) -> None:
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
        assert stream.query() in (True, False)
        assert event.query()
        torch.empty(1000, device=DEVICE)
        torch.empty(1000, pin_memory=True)
    backend.empty_cache()
    backend.empty_host_cache()
    with pytest.raises(RuntimeError, match=failure.message):
        event.synchronize()
    stream.synchronize()


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
    backend.synchronize()


def test_each_of_two_streams_is_told_of_its_failure(failure: Failure) -> None:
    streams = [backend.Stream(), backend.Stream()]
    for stream in streams:
        failure.on(stream)
    for stream in streams:
        with pytest.raises(RuntimeError, match=failure.origin(stream)):
            stream.synchronize()
    backend.synchronize()


def fail_and_leave(
    failure: Failure, and_then: str, *, check: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a process whose work fails without anybody waiting for it, and ``and_then`` after that."""
    code = f"""
import torch
backend = torch.{DEVICE}
{failure.code}
fail(backend.Stream())
print("done")
"""
    return run_python(code + and_then, failure.environment, check=check)


def test_a_failure_that_nobody_waits_for_is_the_end_of_the_process(failure: Failure) -> None:
    ended = fail_and_leave(failure, "")
    assert ended.returncode == 1
    assert ended.stdout == "done\n"
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    assert failure.message in ended.stderr
    assert f"(in aten::{failure.operator} on {DEVICE}:0, stream " in ended.stderr


def test_a_status_that_says_something_is_kept(failure: Failure) -> None:
    ended = fail_and_leave(failure, "raise SystemExit(7)\n")
    assert ended.returncode == 7
    assert failure.message in ended.stderr


def test_a_failure_that_was_told_does_not_end_the_process(failure: Failure) -> None:
    told = "try:\n    backend.synchronize()\nexcept RuntimeError:\n    pass\n"
    assert fail_and_leave(failure, told, check=True).stderr == ""


def test_work_that_succeeds_is_waited_for_in_silence() -> None:
    ended = run_python(f"import torch\ntorch.ones(1000, device='{DEVICE}').sort()")
    assert ended.stderr == ""
