"""Consecutive profiles: schedules, exceptions, threads, processes, and missing functions."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from profiler.traces import BOTH, RECORDS, record, trace_of
from support import run_python
from torch.profiler import profile, schedule

pytestmark = RECORDS


def ones() -> torch.Tensor:
    return torch.ones(1000, device=DEVICE)


def test_each_cycle_of_a_schedule_has_its_own_work() -> None:
    values, counts = ones(), []

    def keep(profiled: Any) -> None:
        counts.append(len(trace_of(profiled).work()))

    plan = schedule(wait=1, warmup=1, active=2, repeat=3)
    with profile(activities=BOTH, schedule=plan, on_trace_ready=keep) as profiled:
        for _ in range(12):
            for _ in range(5):
                values + values
            backend.synchronize()
            profiled.step()
    assert counts == [10, 10, 10]


def test_consecutive_profiles_have_only_their_own_work() -> None:
    values = ones()
    for count in (3, 0, 1, 8):
        profiled = record(lambda count=count: [values + values for _ in range(count)])
        values * values
        assert [event["name"] for event in trace_of(profiled).work()] == [
            "aten::add.Tensor"
        ] * count


def test_an_exception_ends_the_profile_and_not_the_next_one() -> None:
    values = ones()
    first = profile(activities=BOTH)
    with pytest.raises(ZeroDivisionError), first:
        values + values
        raise ZeroDivisionError
    assert len(trace_of(first).work()) == 1
    assert len(trace_of(record(lambda: values + values)).work()) == 1


def test_pending_work_at_the_end_of_a_profile_is_recorded() -> None:
    values = torch.ones(200, 200, device=DEVICE)
    with profile(activities=BOTH) as profiled:
        for _ in range(50):
            values @ values
    assert len(trace_of(profiled).work()) == 50


def test_an_interrupt_during_stop_is_raised_afterwards() -> None:
    ended = run_python(
        """
        import os, signal, threading, time, torch
        from support import keep_busy
        from torch.profiler import ProfilerActivity, profile
        keep_busy(seconds=0.01)
        profiled = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
        profiled.start()
        keep_busy(seconds=1.5)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            profiled.stop()
            time.sleep(60)
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert ended.stdout == "interrupted\n"
    assert "has no work" not in ended.stderr


def test_work_of_all_threads_is_in_the_trace() -> None:
    values = ones()
    ready = threading.Barrier(4)

    def work() -> None:
        ready.wait(30)
        for _ in range(25):
            values + values

    def run() -> None:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    trace = trace_of(record(run))
    assert len(trace.work()) == 100
    assert len({event["args"]["correlation"] for event in trace.work()}) == 100
    assert len({event["tid"] for event in trace.of_kind("privateuse1_runtime")}) == 4


@pytest.mark.filterwarnings("ignore::FutureWarning")  # a later release will remove it
def test_the_memory_timeline_has_the_allocations(tmp_path: Path) -> None:
    def work() -> torch.Tensor:
        return torch.ones(1 << 18, device=DEVICE) + 1

    profiled = record(work, profile_memory=True, record_shapes=True, with_stack=True)
    profiled.export_memory_timeline(str(tmp_path / "memory.raw.json.gz"), f"{DEVICE}:0")
    profiled.export_memory_timeline(str(tmp_path / "memory.json"), f"{DEVICE}:0")
    times, sizes = json.loads((tmp_path / "memory.json").read_text())
    assert len(times) == len(sizes)
    assert max(sum(categories) for categories in sizes) >= 2 << 20


def test_the_autograd_profiler_times_operators_without_a_warning() -> None:
    result = run_python(
        f"""
        import torch
        values = torch.ones(1 << 20, device="{DEVICE}")
        for use_kineto in (False, True):
            with torch.autograd.profiler.profile(
                use_device="{DEVICE}", use_kineto=use_kineto
            ) as profiled:
                values * 2
            (row,) = [row for row in profiled.key_averages() if row.key == "aten::mul"]
            assert row.count == 1 and row.device_time_total > 0, row
        """
    )
    assert "Warning" not in result.stderr
    assert "not enabled" not in result.stderr


def test_a_forked_child_can_profile_its_own_work() -> None:
    run_python(
        f"""
        import os, torch
        from torch.profiler import ProfilerActivity, profile
        both = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
        values = torch.ones(10, device="{DEVICE}")
        with profile(activities=both):
            values + values
        child = os.fork()
        if child == 0:
            host = torch.ones(10)
            with profile(activities=[ProfilerActivity.CPU]) as profiled:
                host + host
            os._exit(0 if [e.key for e in profiled.key_averages()] == ["aten::add"] else 1)
        assert os.waitpid(child, 0)[1] == 0
        with profile(activities=both) as profiled:
            values + values
        assert sum(e.self_device_time_total for e in profiled.key_averages()) > 0
        """
    )
