"""Fixtures of the device's conformance tests, which need neither PyTorch nor the built package."""

from __future__ import annotations

import gc
import math
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import device_library
from kernels.report import Report
from simulator_knobs import Knobs


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option for what the device declines."""
    parser.getgroup("device").addoption(
        "--write-support",
        action="store_true",
        help="only ask the device what it would do, and write what it declines into support.toml",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collects what the device does."""
    config.addinivalue_line("markers", "full: not in the sample that a plain pytest runs")
    config.pluginmanager.register(Report(config))
    # Tests let processes die: each would leave a core of hundreds of MB.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@pytest.fixture(scope="session")
def api() -> ModuleType:
    """The module `_device`: every function of the headers in Python. Without it the run ends."""
    try:
        module = device_library.load()
    except (device_library.BuildError, ImportError) as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.TESTS_FAILED)
    for device in range(module.device_count()):
        # As a project does it: what the device's indices do not reach is divided.
        module.limit_indices(device, module.properties(device).max_index_bits)
    return module


@pytest.fixture(autouse=True)
def no_failures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leaves no failure behind for the next test."""
    if "api" not in request.fixturenames:
        yield
        return
    api = request.getfixturevalue("api")
    yield
    if ("failures", "acknowledge_device", True) in api.functions():
        for device in range(api.device_count()):
            api.acknowledge_device(device)


@pytest.fixture
def restored_layers(api: ModuleType) -> Iterator[None]:
    """What stood over the device stands there again after the test."""
    before = api.layers()
    yield
    api.set_layers(before)


@pytest.fixture
def faults(api: ModuleType, restored_layers: None) -> Iterator[ModuleType]:
    """The layer `faults`, put over the device, and its knobs. Before the test's streams."""
    if "faults" not in api.known_layers():
        pytest.skip("this project has no layer faults: `torchsmith add device_layers` adds it")
    gc.collect()  # buffers in cycles, such as tracebacks, make a copy when they go
    api.set_layers(["faults", *(layer for layer in api.layers() if layer != "faults")])
    yield api.faults
    api.faults.clear()


@pytest.fixture
def simulator(api: ModuleType) -> Iterator[Knobs]:
    """The simulator's knobs; a device without them skips the tests that need them."""
    try:
        knobs = Knobs()
    except AttributeError:
        pytest.skip("only the simulator has these knobs")
    total = [api.memory_info(device).total for device in range(api.device_count())]
    yield knobs
    for device, memory in enumerate(total):
        knobs.set_memory_limit(device, memory)


@pytest.fixture
def bare_device(api: ModuleType, restored_layers: None) -> None:
    """No layer over the device: for what it says itself to a caller that breaks a promise."""
    api.set_layers([])


@pytest.fixture
def second_device(api: ModuleType) -> int:
    """The index of another device than 0."""
    if api.device_count() < 2:
        pytest.skip("needs two devices")
    return 1


@pytest.fixture
def make_pinned(api: ModuleType) -> Iterator[Callable[[int], int]]:
    """Allocates page-locked host memory that is given back after the test."""
    addresses = []

    def make(size: int) -> int:
        addresses.append(api.allocate_host(size))
        return int(addresses[-1])

    yield make
    for address in addresses:
        api.deallocate_host(address)


@pytest.fixture
def make_buffer(api: ModuleType) -> Iterator[Callable[..., Any]]:
    """Creates buffers that outlive the test's streams, whatever is still pending on those."""
    buffers: list[Any] = []

    def make(size: int, device: int = 0) -> Any:
        buffers.append(api.Buffer(device, size))
        return buffers[-1]

    yield make
    buffers.clear()


@pytest.fixture
def make_stream(
    api: ModuleType, make_pinned: object, make_buffer: object
) -> Iterator[Callable[..., Any]]:
    """Creates streams that are destroyed after the test, if the test has not done so."""
    streams = []

    def make(device: int = 0, priority: int = 0) -> Any:
        most = api.properties(device).max_streams
        if 0 < most <= len(streams):
            pytest.skip(f"properties: the device makes {most} streams")
        streams.append(api.create_stream(device, priority))
        return streams[-1]

    yield make
    for stream in streams:
        api.destroy_stream(stream)


@pytest.fixture
def stream(make_stream: Callable[..., Any]) -> Any:
    """A stream of device 0."""
    return make_stream()


@pytest.fixture
def make_event(api: ModuleType) -> Iterator[Callable[..., Any]]:
    """Creates events that are destroyed after the test."""
    events = []

    def make(device: int = 0, timing: bool = False) -> Any:
        events.append(api.create_event(device, timing))
        return events[-1]

    yield make
    for event in events:
        api.destroy_event(event)


class Gate:
    """Holds streams back until it is opened: ordering without sleeping."""

    def __init__(self, api: ModuleType) -> None:
        self._api = api
        self._opened = threading.Event()
        self._reached = threading.Event()

    def hold(self, stream: Any) -> None:
        """Work enqueued on the stream from now on waits for the gate."""

        def wait() -> None:
            self._reached.set()
            self._opened.wait()

        self._api.launch_host(stream, wait)

    def wait_until_reached(self) -> None:
        """Returns when a stream stands at the gate."""
        assert self._reached.wait(timeout=60)

    def open(self) -> None:
        """Lets the streams go on."""
        self._opened.set()


@pytest.fixture
def host_functions(api: ModuleType) -> None:
    """Skips what is to see the host run between pieces of work."""
    if not api.properties(0).host_functions:
        pytest.skip("the device runs no host functions")


@pytest.fixture
def make_gate(
    host_functions: None, make_stream: object, make_event: object, api: ModuleType
) -> Iterator[Callable[[], Gate]]:
    """Makes gates that the end of the test opens, before its streams are destroyed."""
    gates = []

    def make() -> Gate:
        gates.append(Gate(api))
        return gates[-1]

    yield make
    for gate in gates:
        gate.open()


@pytest.fixture
def gate(make_gate: Callable[[], Gate]) -> Gate:
    """One gate."""
    return make_gate()


class LongWork:
    """Holds streams back for a while, which ends by itself, by filling memory again and again."""

    SECONDS = 0.3
    ONCE = 0.02  # at least, so that a launch takes no time beside it

    def __init__(self, api: ModuleType, make_buffer: Callable[..., Any]) -> None:
        self._api = api
        self._make_buffer = make_buffer
        self._most = min(2**28, api.memory_info(0).free // 4)

    def hold(self, stream: Any) -> None:
        """Work enqueued on a stream of device 0 from now on waits."""
        buffer = self._make_buffer(min(2**20, self._most))
        while (once := self._seconds(stream, buffer)) < self.ONCE and buffer.bytes < self._most:
            buffer = self._make_buffer(min(2 * buffer.bytes, self._most))
        self._fill(stream, buffer, math.ceil(self.SECONDS / once))
        if self._api.is_idle(stream):
            pytest.skip("the device has done all work when a call returns")

    def open(self) -> None:
        """It ends by itself."""

    def _seconds(self, stream: Any, buffer: Any) -> float:
        start = time.perf_counter()
        self._fill(stream, buffer, 1)
        self._api.synchronize(stream)
        return time.perf_counter() - start

    def _fill(self, stream: Any, buffer: Any, times: int) -> None:
        for value in range(times):
            self._api.fill_bytes(stream, buffer.address, value % 256, buffer.bytes)


@pytest.fixture
def any_gate(
    api: ModuleType, request: pytest.FixtureRequest, make_buffer: Callable[..., Any]
) -> Gate | LongWork:
    """A gate for one stream, or what comes near it where the device runs no host functions."""
    if api.properties(0).host_functions:
        gate: Gate = request.getfixturevalue("gate")
        return gate
    return LongWork(api, make_buffer)


@pytest.fixture
def run_child(api: ModuleType) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python code in a process of its own, which finds `_device` and the modules of the tests."""
    module_folder = str(Path(api.__file__ or "").parent)

    def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        folders = [module_folder, str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run
