"""Plans: the launches that share a plan, its lifetime, and its use by several threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_library import needs
from making import Make
from runtime.work import in_threads, wait_for_failure

GROUP = "plans"
COUNT = np.arange(1000, dtype=np.int32)


@pytest.fixture(autouse=True)
def planned(api: ModuleType, group: str) -> Iterator[None]:
    """An empty cache. The simulator acts as a device that compiles kernels, in no time."""
    variable = f"{api.ENV_PREFIX}_SIMULATOR_COMPILE_MS"
    before = os.environ.get(variable)
    os.environ[variable] = before or "0"
    api.set_layers(api.layers())
    limit = api.plan_figures(0)["limit"]
    start_anew(api)
    yield
    api.set_plan_limit(limit)
    start_anew(api)
    if before is None:
        del os.environ[variable]
    api.set_layers(api.layers())


def start_anew(api: ModuleType) -> None:
    for device in range(api.device_count()):
        api.synchronize_device(device)
        api.clear_plans(device)
        api.reset_plan_figures(device)


def wants_plan(api: ModuleType, family: str) -> None:
    if not api.wants_plan(family):
        pytest.skip(f"the device has no plans for {family}")


@pytest.fixture
def counters(api: ModuleType, make: Make) -> Any:
    """A thousand numbers. Skips the test if the addition has no plan."""
    wants_plan(api, "binary")
    made = make.counters(COUNT)
    api.clear_plans(0)
    api.reset_plan_figures(0)
    return made


def figures(api: ModuleType, *names: str, device: int = 0) -> list[int]:
    of_device = api.plan_figures(device)
    return [of_device[name] for name in names]


def cleared(api: ModuleType, *names: str) -> list[int]:
    """The statistics after all plans were evicted."""
    api.clear_plans(0)
    return figures(api, *names)


def test_the_second_launch_of_a_kind_finds_the_plan_of_the_first(
    api: ModuleType, stream: Any, counters: Any
) -> None:
    for _ in range(3):
        counters.add(stream, 2)
    api.synchronize(stream)
    assert (counters.read() == COUNT + 6).all()
    assert figures(api, "misses", "hits", "kinds", "evictions") == [1, 2, 1, 0]


def test_a_kind_depends_on_the_type_and_zeroness_of_numbers(
    api: ModuleType, stream: Any, counters: Any
) -> None:
    for number in (1, 2, 3, -5):
        counters.add(stream, number)
    assert figures(api, "misses", "hits") == [1, 3]
    counters.add(stream, 0)
    counters.add(stream, True)
    assert figures(api, "misses") == [3]
    api.synchronize(stream)
    assert (counters.read() == COUNT + 2).all()


def test_a_kind_depends_on_operation_sizes_strides_and_dtypes(
    api: ModuleType, stream: Any, make: Make
) -> None:
    wants_plan(api, "copy")
    to, source = make.buffer(1024), make.buffer(1024)

    def copy(*sizes: int, strides: list[int], dtype: Any = api.DType.int32, offset: int = 0) -> int:
        views = (it.view(offset, dtype, list(sizes), strides) for it in (to, source))
        assert api.copy(stream, *views) is None
        return int(api.plan_figures(0)["misses"])

    assert copy(4, 4, strides=[4, 1]) == 1
    assert copy(4, 4, strides=[4, 1], offset=64) == 1
    assert copy(4, 4, strides=[1, 4]) == 2
    assert copy(2, 8, strides=[8, 1]) == 3
    assert copy(16, strides=[1]) == 4
    assert copy(16, strides=[1], dtype=api.DType.int64) == 5
    assert copy(4, 4, strides=[4, 1]) == 5
    api.synchronize(stream)


def test_each_device_has_its_own_kinds(api: ModuleType, second_device: int, make: Make) -> None:
    wants_plan(api, "fill")
    for device in (0, second_device):
        other, buffer = make.stream(device), make.buffer(64, device)
        for value in (7, 8):
            view = buffer.view(0, api.DType.int32, [16], [1])
            assert api.fill(other, view, value) is None
        api.synchronize(other)
        assert figures(api, "misses", "hits", "kinds", device=device) == [1, 1, 1]
        assert (np.frombuffer(buffer.read(), np.int32) == 8).all()


def test_probe_results_are_cached(api: ModuleType, stream: Any, counters: Any) -> None:
    counters.add(stream, 1, probe=True)
    assert figures(api, "answers", "misses", "hits") == [0, 0, 0]
    counters.add(stream, 1, probe=True)
    assert figures(api, "answers", "misses", "hits") == [1, 0, 0]
    # An answer may depend on values that plans do not depend on.
    counters.add(stream, 2, probe=True)
    assert figures(api, "answers", "kinds") == [1, 1]
    counters.add(stream, 2, probe=True)
    assert figures(api, "answers") == [2]


def test_launches_with_many_arrays_have_a_kind(api: ModuleType, stream: Any, make: Make) -> None:
    wants_plan(api, "unscale")
    buffer = make.buffer(4096)
    float32 = api.DType.float32
    buffer.write(np.ones(1024, np.float32).view(np.uint8))
    views = [buffer.view(4 * i, float32, [1, 1, 1], [1, 1, 1]) for i in range(200)]
    found, scale = (buffer.view(4 * i, float32, [1], [1]) for i in (1000, 1001))
    for count in (200, 200, 199):
        if reason := api.unscale(stream, views[:count], found, scale):
            pytest.skip(f"the device does not support unscale: {reason}")
    api.synchronize(stream)
    assert figures(api, "misses", "hits") == [2, 1]


# --- The lifetime of a plan ---


def test_the_least_recently_used_kind_is_evicted(
    api: ModuleType, stream: Any, counters: Any
) -> None:
    api.set_plan_limit(2)
    kinds: list[Any] = [1, 0, True]
    counters.add(stream, kinds[0])
    counters.add(stream, kinds[1])
    api.synchronize(stream)
    counters.add(stream, kinds[2])
    assert figures(api, "kinds", "evictions", "misses") == [2, 1, 3]
    counters.add(stream, kinds[2])
    assert figures(api, "misses") == [3]


def test_a_plan_is_released_when_its_work_has_run(
    api: ModuleType, stream: Any, counters: Any, gate: Any
) -> None:
    gate.hold(stream)
    counters.add(stream, 1)
    assert cleared(api, "kinds", "evictions", "waiting", "releases") == [0, 1, 1, 0]
    assert cleared(api, "waiting", "releases") == [1, 0]
    gate.open()
    api.synchronize(stream)
    assert cleared(api, "waiting", "releases") == [0, 1]
    assert (counters.read() == COUNT + 1).all()


def test_a_plan_is_released_when_the_work_of_all_streams_has_run(
    api: ModuleType, make: Make, counters: Any
) -> None:
    streams = [make.stream() for _ in range(3)]
    gates = [make.gate() for _ in streams]
    for stream, gate in zip(streams, gates, strict=True):
        gate.hold(stream)
        counters.add(stream, 0)
    api.clear_plans(0)
    for stream, gate in zip(streams, gates, strict=True):
        assert figures(api, "releases") == [0]
        gate.open()
        api.synchronize(stream)
        api.clear_plans(0)
    assert figures(api, "releases", "waiting") == [1, 0]


def test_a_stream_can_be_destroyed_before_its_plans(api: ModuleType, counters: Any) -> None:
    stream = api.create_stream(0, 0)
    counters.add(stream, 1)
    api.destroy_stream(stream)
    assert cleared(api, "waiting", "releases") == [0, 1]


def test_plans_can_wait_for_a_destroyed_stream(api: ModuleType, counters: Any, gate: Any) -> None:
    stream = api.create_stream(0, 0)
    gate.hold(stream)
    counters.add(stream, 1)
    api.clear_plans(0)
    gate.open()
    api.destroy_stream(stream)
    assert cleared(api, "waiting", "releases") == [0, 1]


def test_results_are_right_with_a_limit_of_0(api: ModuleType, stream: Any, counters: Any) -> None:
    api.set_plan_limit(0)
    for number in range(-20, 20):
        counters.add(stream, number % 3)
    api.synchronize(stream)
    api.clear_plans(0)
    assert (counters.read() == COUNT + sum(number % 3 for number in range(-20, 20))).all()
    evictions, releases, waiting = figures(api, "evictions", "releases", "waiting")
    assert (evictions, waiting) == (releases, 0)


def test_late_completion_delays_the_release(
    api: ModuleType, faults: ModuleType, make: Make, counters: Any
) -> None:
    stream = make.stream()
    faults.set_delay(20_000, 20_000)
    counters.add(stream, 1)
    assert cleared(api, "releases") == [0]
    api.synchronize(stream)
    assert cleared(api, "releases") == [1]


def test_without_an_event_a_plan_waits_for_an_idle_stream(
    api: ModuleType, faults: ModuleType, make: Make, counters: Any, gate: Any
) -> None:
    stream = make.stream()
    gate.hold(stream)
    counters.add(stream, 1)
    faults.inject("event")
    assert cleared(api, "waiting") == [1]
    gate.open()
    api.synchronize(stream)
    assert cleared(api, "waiting", "releases") == [0, 1]


# --- Graphs ---


@pytest.fixture
def graphs() -> None:
    needs("begin_capture", "end_capture", "launch_graph", "destroy_graph")


def test_a_graph_keeps_its_plans_until_it_is_destroyed_and_has_run(
    api: ModuleType, graphs: None, stream: Any, make: Make, counters: Any, gate: Any
) -> None:
    api.begin_capture(stream)
    counters.add(stream, 1)
    counters.add(stream, 2)
    graph = api.end_capture(stream)
    assert cleared(api, "kinds", "evictions", "releases") == [0, 1, 0]
    api.launch_graph(graph, stream)
    api.synchronize(stream)
    assert cleared(api, "releases") == [0]
    other = make.stream()
    gate.hold(other)
    api.launch_graph(graph, other)
    api.destroy_graph(graph)
    assert cleared(api, "waiting", "releases") == [1, 0]
    gate.open()
    api.synchronize(other)
    assert cleared(api, "waiting", "releases") == [0, 1]
    assert (counters.read() == COUNT + 6).all()


def test_plans_are_evicted_in_the_middle_of_a_capture(
    api: ModuleType, graphs: None, stream: Any, counters: Any
) -> None:
    counters.add(stream, 1)
    api.begin_capture(stream)
    assert cleared(api, "waiting", "releases") == [1, 0]
    counters.add(stream, 0)
    api.clear_plans(0)
    graph = api.end_capture(stream)
    api.launch_graph(graph, stream)
    api.synchronize(stream)
    api.destroy_graph(graph)
    assert cleared(api, "waiting", "releases") == [0, 2]
    assert (counters.read() == COUNT + 1).all()


def test_a_failed_capture_releases_its_plans(
    api: ModuleType, graphs: None, stream: Any, counters: Any
) -> None:
    api.begin_capture(stream)
    counters.add(stream, 1)
    wait_for_failure(api, stream)
    with pytest.raises(api.DeviceError):
        api.end_capture(stream)
    assert cleared(api, "waiting", "releases") == [0, 1]


def test_threads_share_plans_while_others_evict_them(
    api: ModuleType, make: Make, counters: Any
) -> None:
    api.set_plan_limit(2)
    rounds = 200
    own = [(make.stream(), make.counters(COUNT)) for _ in range(3)]
    running = [True] * len(own)

    def work(thread: int) -> None:
        if thread == len(own):
            while any(running):
                api.clear_plans(0)
            return
        stream, numbers = own[thread]
        try:
            for i in range(rounds):
                numbers.add(stream, i % 3)
                numbers.add(stream, True)
            api.synchronize(stream)
        finally:
            running[thread] = False

    in_threads(work)
    for _, numbers in own:
        assert (numbers.read() == COUNT + rounds + sum(i % 3 for i in range(rounds))).all()
    api.clear_plans(0)
    waiting, evictions, releases = figures(api, "waiting", "evictions", "releases")
    assert waiting == 0
    # A kind that has only been probed has no plan.
    assert 0 < releases <= evictions


# --- Wrong calls ---


def test_validate_refuses_a_plan_of_another_kind(
    api: ModuleType, validated: None, stream: Any, counters: Any, make: Make
) -> None:
    slot = api.PlanSlot()
    counters.add(stream, 1, plan=slot)
    counters.add(stream, 2, plan=slot)
    assert slot.plan is not None
    with pytest.raises(api.DeviceError, match="made for launches of another kind"):
        make.counters(COUNT[:10]).add(stream, 1, plan=slot)
    with pytest.raises(api.DeviceError, match="a probe has a slot"):
        counters.add(stream, 1, plan=slot, probe=True)
    api.synchronize(stream)
    api.release_plan(0, slot.plan)
    assert (counters.read() == COUNT + 3).all()


def test_validate_works_with_the_cache(
    api: ModuleType, validated: None, stream: Any, counters: Any
) -> None:
    for _ in range(2):
        for number in (1, 0, True):
            counters.add(stream, number)
        api.synchronize(stream)
        api.clear_plans(0)
    assert figures(api, "releases") == [6]


def test_a_plan_is_released_once(
    api: ModuleType, validated: None, stream: Any, counters: Any, capfd: Any
) -> None:
    slot = api.PlanSlot()
    counters.add(stream, 1, plan=slot)
    api.synchronize(stream)
    for _ in range(2):
        api.release_plan(0, slot.plan)
    assert "contract of release_plan: the plan was released before" in capfd.readouterr().err
