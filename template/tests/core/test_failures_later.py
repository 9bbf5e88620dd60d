"""Work that fails after its operator has returned: who is told, how often, and in which words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import needs, needs_two_devices, pick_by_index, run_python

pytestmark = [needs(torch.float32, torch.int64), pytest.mark.native(like=pick_by_index)]

OUT_OF_BOUNDS = "index 7 is out of bounds for a dimension of size 5"


def fail(stream: torch.Stream) -> torch.Tensor:
    """Let an operator fail on ``stream``, where it has run when this returns."""
    values = torch.ones(5, device=stream.device)
    index = torch.tensor([1, 7], device=stream.device)
    with backend.stream(stream):
        result = values[index]
    while not stream.query():
        pass
    return result


def origin(operator: str, stream: torch.Stream) -> str:
    """Return a pattern of the words that name where a failure comes from."""
    where = rf"{stream.device}, stream {stream.stream_id}\b"
    return rf"\(in aten::{re.escape(operator)} on {where}"


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
def test_whoever_waits_for_results_is_told_once(wait: str) -> None:
    stream = backend.Stream()
    result = fail(stream)
    with backend.stream(stream):
        pattern = OUT_OF_BOUNDS + ".*" + origin("index.Tensor", stream)
        with pytest.raises(RuntimeError, match=pattern):
            WAITS[wait](stream, result)
        for again in WAITS.values():
            again(stream, result)


@pytest.mark.parametrize("wait", WAITS)
def test_who_waits_behind_an_event_is_told(wait: str) -> None:
    failing, waiting = backend.Stream(), backend.Stream()
    result = fail(failing)
    waiting.wait_stream(failing)
    with backend.stream(waiting):
        derived = result + 1
        with pytest.raises(RuntimeError, match=origin("index.Tensor", failing)):
            WAITS[wait](waiting, derived)
    failing.synchronize()
    backend.synchronize()


def test_who_waits_for_other_work_is_not_told() -> None:
    failing, other = backend.Stream(), backend.Stream()
    before = other.record_event()
    fail(failing)
    before.synchronize()
    other.synchronize()
    with pytest.raises(RuntimeError, match=OUT_OF_BOUNDS):
        failing.synchronize()


@needs_two_devices
def test_a_failure_travels_with_a_copy_to_another_device() -> None:
    stream = backend.Stream(0)
    result = fail(stream)
    with backend.stream(stream):
        there = result.to(f"{DEVICE}:1")
    with pytest.raises(RuntimeError, match=origin("index.Tensor", stream)):
        there.cpu()
    for device in range(2):
        backend.synchronize(device)


def test_asking_and_allocating_neither_tell_nor_forget() -> None:
    stream = backend.Stream()
    result = fail(stream)
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
    with pytest.raises(RuntimeError, match=OUT_OF_BOUNDS):
        event.synchronize()
    stream.synchronize()


@needs(torch.int32)
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


def test_each_of_two_streams_is_told_of_its_failure() -> None:
    streams = [backend.Stream(), backend.Stream()]
    for stream in streams:
        fail(stream)
    for stream in streams:
        with pytest.raises(RuntimeError, match=origin("index.Tensor", stream)):
            stream.synchronize()
    backend.synchronize()


FAIL_AND_LEAVE = f"""
import torch
backend = torch.{DEVICE}
values, index = torch.ones(5, device="{DEVICE}"), torch.tensor([7], device="{DEVICE}")
with backend.stream(backend.Stream()) as stream:
    values[index]
print("done")
"""


def test_a_failure_that_nobody_waits_for_is_the_end_of_the_process() -> None:
    ended = run_python(FAIL_AND_LEAVE, check=False)
    assert ended.returncode == 1
    assert ended.stdout == "done\n"
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    assert OUT_OF_BOUNDS in ended.stderr
    assert f"(in aten::index.Tensor on {DEVICE}:0, stream " in ended.stderr


def test_a_status_that_says_something_is_kept() -> None:
    ended = run_python(FAIL_AND_LEAVE + "raise SystemExit(7)\n", check=False)
    assert ended.returncode == 7
    assert OUT_OF_BOUNDS in ended.stderr


def test_a_failure_that_was_told_does_not_end_the_process() -> None:
    told = FAIL_AND_LEAVE + "try:\n    backend.synchronize()\nexcept RuntimeError:\n    pass\n"
    ended = run_python(told)
    assert ended.stderr == ""


def test_work_that_succeeds_is_waited_for_in_silence() -> None:
    ended = run_python(f"import torch\ntorch.ones(1000, device='{DEVICE}').sort()")
    assert ended.stderr == ""
