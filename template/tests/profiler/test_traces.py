"""The devices' work in a trace: its operator, its stream and its time."""

from __future__ import annotations

import itertools
import time
from collections import Counter

import pytest
import torch
from backend import DEVICE, backend
from profiler.traces import BOTH, RECORDS, encloses, end, record, trace_of
from support import needs_two_devices
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function

pytestmark = RECORDS
MILLISECOND = 1000.0


def ones(device: str = DEVICE) -> torch.Tensor:
    return torch.ones(1000, device=device)


def test_a_kernel_belongs_to_its_operator() -> None:
    values = ones()
    trace = trace_of(record(lambda: values + values))
    (kernel,) = trace.work()
    (launch,) = trace.of_kind("privateuse1_runtime")
    assert (kernel["cat"], kernel["name"]) == ("kernel", "aten::add.Tensor")
    assert trace.operator_of(kernel) == trace.operator_of(launch) == "aten::add"
    assert kernel["args"]["correlation"] == launch["args"]["correlation"]
    assert launch["ts"] <= kernel["ts"]


def test_an_arrow_leads_from_each_launch_to_its_kernel() -> None:
    values = ones()
    trace = trace_of(record(lambda: [values + values for _ in range(5)]))
    starts, ends = (
        {
            event["id"]: (event["pid"], event["tid"], event["ts"])
            for event in trace.of_kind("ac2g")
            if event["ph"] == ph
        }
        for ph in "sf"
    )
    assert len(starts) == 5
    assert starts == {
        launch["args"]["correlation"]: (launch["pid"], launch["tid"], launch["ts"])
        for launch in trace.of_kind("privateuse1_runtime")
    }
    assert ends == {
        kernel["args"]["correlation"]: (kernel["pid"], kernel["tid"], kernel["ts"])
        for kernel in trace.work()
    }


def test_averages_are_the_sums_of_the_kernels() -> None:
    values = ones()
    profiled = record(lambda: [values * values for _ in range(7)])
    kernels = trace_of(profiled).work()
    (row,) = [event for event in profiled.key_averages() if event.key == "aten::mul"]
    assert row.count == len(kernels) == 7
    total = sum(kernel["dur"] for kernel in kernels)
    assert row.device_time_total == row.self_device_time_total
    assert abs(row.device_time_total - total) < 0.01
    assert total > 0


def test_copies_have_their_bytes_and_operators() -> None:
    host, values = torch.ones(500), ones()
    trace = trace_of(record(lambda: (host.to(DEVICE), values.cpu(), values[0].item())))
    copies = trace.of_kind("gpu_memcpy")
    assert [copy["args"]["bytes"] for copy in copies] == [2000, 4000, 4]
    assert [trace.operator_of(copy) for copy in copies] == [
        *("aten::copy_", "aten::copy_", "aten::_local_scalar_dense")
    ]


def test_each_stream_is_a_track() -> None:
    side, values = torch.Stream(DEVICE), ones()

    def work() -> None:
        for _ in range(3):
            values + values
        with side:
            for _ in range(4):
                values + values

    torch.accelerator.synchronize()
    trace = trace_of(record(work))
    tracks = Counter((kernel["pid"], kernel["tid"]) for kernel in trace.work())
    named = trace.labels("thread_name")
    assert {named[track]: count for track, count in tracks.items()} == {
        "default stream": 3,
        f"stream {side.stream_id}": 4,
    }
    for track in tracks:
        own = [kernel for kernel in trace.work() if (kernel["pid"], kernel["tid"]) == track]
        for earlier, later in itertools.pairwise(own):
            assert end(earlier) <= later["ts"] + 0.002


@needs_two_devices
def test_each_device_is_a_process() -> None:
    first, second = ones(f"{DEVICE}:0"), ones(f"{DEVICE}:1")
    trace = trace_of(record(lambda: (first + first, second * second)))
    names = {pid: name for (pid, _), name in trace.labels("process_name").items()}
    assert {(names[event["pid"]], event["name"]) for event in trace.work()} == {
        (f"{DEVICE}:0", "aten::add.Tensor"),
        (f"{DEVICE}:1", "aten::mul.Tensor"),
    }


def test_work_of_the_device_is_within_the_host_time() -> None:
    values = ones()
    before = time.time_ns()
    profiled = record(lambda: [values + values for _ in range(20)])
    after = time.time_ns()
    starts = [event.start_ns() for event in profiled.profiler.kineto_results.events()]
    ends = [event.end_ns() for event in profiled.profiler.kineto_results.events()]
    assert before - 1e6 <= min(starts) <= max(ends) <= after + 1e6
    work = trace_of(profiled).work()
    assert sum(event["dur"] for event in work) <= (after - before) / 1000 + MILLISECOND


def test_device_ranges_span_their_first_to_last_kernel() -> None:
    values = ones()

    def work() -> None:
        with record_function("outer"):
            values + values
            with record_function("inner"):
                values * values
            values - values
        with record_function("empty"):
            pass
        values / values

    trace = trace_of(record(work))
    ranges = {event["name"]: event for event in trace.of_kind("gpu_user_annotation")}
    assert sorted(ranges) == ["inner", "outer"]
    within = {
        name: [event["name"] for event in trace.work() if encloses(around, event)]
        for name, around in ranges.items()
    }
    assert within["inner"] == ["aten::mul.Tensor"]
    assert within["outer"] == ["aten::add.Tensor", "aten::mul.Tensor", "aten::sub.Tensor"]


def test_kernels_of_a_backward_pass_belong_to_operators() -> None:
    leaf = ones().requires_grad_()

    def step() -> None:
        (leaf * leaf).sum().backward()

    step()
    trace = trace_of(record(step))
    work = trace.work()
    assert len({launch["tid"] for launch in trace.of_kind("privateuse1_runtime")}) == 2
    assert [trace.operator_of(event) for event in work].count("aten::mul") == 3
    assert all(trace.operator_of(event) is not None for event in work)


def test_python_functions_enclose_their_launches() -> None:
    values = ones()

    def the_caller() -> None:
        values + values

    # Only in this mode do PyTorch's averages have stacks.
    verbose = _ExperimentalConfig(verbose=True)
    profiled = record(the_caller, with_stack=True, experimental_config=verbose)
    trace = trace_of(profiled)
    (caller,) = [e for e in trace.of_kind("python_function") if e["name"].endswith("the_caller")]
    (launch,) = trace.of_kind("privateuse1_runtime")
    assert encloses(caller, launch)
    (row,) = [
        event
        for event in profiled.key_averages(group_by_stack_n=5)
        if event.key == "aten::add" and event.device_time_total > 0
    ]
    assert any("the_caller" in line for line in row.stack)


def test_a_profile_of_only_the_host_has_no_device_work() -> None:
    values = ones()
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        values + values
    trace = trace_of(profiled)
    assert trace.work() == trace.of_kind("privateuse1_runtime") == []
    assert [event["name"] for event in trace.of_kind("cpu_op")] == ["aten::add"]


def test_a_profile_of_only_the_device_has_no_operators() -> None:
    values = ones()
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiled:
        values + values
    trace = trace_of(profiled)
    assert [event["name"] for event in trace.work()] == ["aten::add.Tensor"]
    assert trace.of_kind("cpu_op") == []


def test_each_device_is_named_once() -> None:
    trace = trace_of(record(ones))
    names = [event["args"]["name"] for event in trace.events if event["name"] == "process_name"]
    devices = [name for name in names if name.startswith(f"{DEVICE}:")]
    assert sorted(devices) == [f"{DEVICE}:{index}" for index in range(backend.device_count())]
    assert len(names) == len(devices) + 1


# --- Limits of a trace ---


def test_a_wait_between_streams_is_not_recorded_as_work() -> None:
    side, values = torch.Stream(DEVICE), ones()

    def work() -> None:
        values + values
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            values * values

    names = [event["name"] for event in trace_of(record(work)).work()]
    assert sorted(names) == ["aten::add.Tensor", "aten::mul.Tensor"]


def test_a_range_around_backward_has_only_the_work_of_its_own_thread() -> None:
    leaf = ones().requires_grad_()
    product = leaf * leaf
    gradient = ones()

    def work() -> None:
        with record_function("backward"):
            gradient + gradient
            product.backward(gradient)

    trace = trace_of(record(work))
    (around,) = trace.of_kind("gpu_user_annotation")
    names = Counter(event["name"] for event in trace.work())
    assert names["aten::mul.Tensor"] == 2
    (within,) = [event["name"] for event in trace.work() if encloses(around, event)]
    assert within == "aten::add.Tensor"


def test_work_of_a_graph_belongs_to_its_launch() -> None:
    if not hasattr(backend, "graph"):
        pytest.skip("generated without graphs")
    values, graph = ones(), backend.Graph()
    with backend.graph(graph):
        values + values
        values * values

    def work() -> None:
        with record_function("replays"):
            graph.replay()
            graph.replay()

    trace = trace_of(record(work))
    launches = trace.of_kind("privateuse1_runtime")
    assert [launch["name"] for launch in launches] == ["launch_graph"] * 2
    assert [(event["name"], event["args"]["correlation"]) for event in trace.work()] == [
        (name, launch["args"]["correlation"])
        for launch in launches
        for name in ("aten::add.Tensor", "aten::mul.Tensor")
    ]
    assert {trace.operator_of(event) for event in trace.work()} == {None}
    (replays,) = trace.of_kind("gpu_user_annotation")
    assert all(encloses(replays, event) for event in trace.work())


def test_toggle_collection_dynamic_keeps_device_work_in_the_trace() -> None:
    values = ones()
    with profile(activities=BOTH) as profiled:
        profiled.toggle_collection_dynamic(False, [ProfilerActivity.PrivateUse1])
        values + values
        backend.synchronize()
    assert [event["name"] for event in trace_of(profiled).work()] == ["aten::add.Tensor"]
