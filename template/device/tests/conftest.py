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
import making
from kernels.report import Report
from simulator_knobs import Knobs

make = making.make


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("device").addoption(
        "--write-support",
        action="store_true",
        help="only probe the device, and write the unsupported cases to support.toml",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the report of the device's results."""
    config.addinivalue_line("markers", "full: not in the sample that a plain pytest runs")
    config.pluginmanager.register(Report(config))
    # Some tests abort processes: each would leave a core dump of hundreds of MB.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@pytest.fixture(scope="session")
def api() -> ModuleType:
    """The module `_device`: every function of the headers in Python. Without it the run ends."""
    try:
        module = device_library.load()
    except (device_library.BuildError, ImportError) as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.TESTS_FAILED)
    for device in range(module.device_count()):
        # As in a project: launches of arrays beyond the device's index limit are split.
        module.limit_indices(device, module.properties(device).max_index_bits)
    return module


@pytest.fixture(autouse=True)
def no_failures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Acknowledges failures after the test, so that the next test starts without any."""
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
    before = api.layers()
    yield
    api.set_layers(before)


@pytest.fixture
def faults(api: ModuleType, restored_layers: None) -> Iterator[ModuleType]:
    """Adds the layer `faults` before the test makes streams. Returns its controls."""
    if "faults" not in api.known_layers():
        pytest.skip("this project has no layer faults: `torchsmith add device_layers` adds it")
    gc.collect()  # buffers in cycles, such as tracebacks, make a copy when they are freed
    api.set_layers(["faults", *(layer for layer in api.layers() if layer != "faults")])
    yield api.faults
    api.faults.clear()


@pytest.fixture
def refuses(api: ModuleType) -> Callable[..., None]:
    """Asserts that a call throws kInvalidArgument, with a message that matches this pattern."""

    def refuse(function: Callable[..., object], *arguments: object, says: str = ".") -> None:
        with pytest.raises(api.DeviceError, match=says) as caught:
            function(*arguments)
        assert caught.value.code is api.ErrorCode.INVALID_ARGUMENT

    return refuse


@pytest.fixture
def simulator(api: ModuleType) -> Iterator[Knobs]:
    """The simulator's test functions. Skips the test on other devices."""
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
    """Removes all layers, for tests of the device's own errors for a wrong call."""
    api.set_layers([])


@pytest.fixture
def second_device(api: ModuleType) -> int:
    """The index of a second device. Skips the test if there is one device."""
    if api.device_count() < 2:
        pytest.skip("needs two devices")
    return 1


@pytest.fixture
def make_pinned(api: ModuleType) -> Iterator[Callable[[int], int]]:
    """Allocates page-locked host memory that is freed after the test."""
    addresses = []

    def make(size: int) -> int:
        addresses.append(api.allocate_host(size))
        return int(addresses[-1])

    yield make
    for address in addresses:
        api.deallocate_host(address)


@pytest.fixture
def make_buffer(api: ModuleType) -> Iterator[Callable[..., Any]]:
    """Creates buffers that outlive the test's streams and their pending work."""
    buffers: list[Any] = []

    def make(size: int, device: int = 0) -> Any:
        buffers.append(api.Buffer(device, size))
        return buffers[-1]

    yield make
    buffers.clear()


@pytest.fixture
def buffer(make_buffer: Callable[..., Any]) -> Any:
    """64 bytes of device 0."""
    return make_buffer(64)


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
    return make_stream()


@pytest.fixture
def streams(make_stream: Callable[..., Any]) -> tuple[Any, Any]:
    return make_stream(), make_stream()


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


@pytest.fixture(params=[False, True], ids=["untimed", "timed"])
def timing(request: pytest.FixtureRequest) -> bool:
    """Whether an event has a time."""
    if request.param:
        device_library.needs_property("event_timing")
    return bool(request.param)


class Gate:
    """Blocks streams until it is opened, so that tests need no sleeps."""

    def __init__(self, api: ModuleType) -> None:
        self._api = api
        self._opened = threading.Event()
        self._reached = threading.Event()

    def hold(self, stream: Any) -> None:
        """Work that is enqueued on the stream after this call waits for the gate."""

        def wait() -> None:
            self._reached.set()
            self._opened.wait()

        self._api.launch_host(stream, wait)

    def wait_until_reached(self) -> None:
        """Returns when a stream has reached the gate."""
        assert self._reached.wait(timeout=60)

    def open(self) -> None:
        """Unblocks the streams."""
        self._opened.set()


@pytest.fixture
def host_functions() -> None:
    device_library.needs_property("host_functions")


@pytest.fixture
def make_gate(
    host_functions: None, make_stream: object, make_event: object, api: ModuleType
) -> Iterator[Callable[[], Gate]]:
    """Makes gates. They are opened at the end of the test, before its streams are destroyed."""
    gates = []

    def make() -> Gate:
        gates.append(Gate(api))
        return gates[-1]

    yield make
    for gate in gates:
        gate.open()


@pytest.fixture
def gate(make_gate: Callable[[], Gate]) -> Gate:
    return make_gate()


class LongWork:
    """Blocks streams for a limited time, by filling memory many times."""

    SECONDS = 0.3
    ONCE = 0.02  # at least, so that the time of a launch is negligible

    def __init__(self, api: ModuleType, make_buffer: Callable[..., Any]) -> None:
        self._api = api
        self._make_buffer = make_buffer
        self._most = min(2**28, api.memory_info(0).free // 4)

    def hold(self, stream: Any) -> None:
        """Work that is enqueued on a stream of device 0 after this call waits."""
        buffer = self._make_buffer(min(2**20, self._most))
        while (once := self._seconds(stream, buffer)) < self.ONCE and buffer.bytes < self._most:
            buffer = self._make_buffer(min(2 * buffer.bytes, self._most))
        self._fill(stream, buffer, math.ceil(self.SECONDS / once))
        if self._api.is_idle(stream):
            pytest.skip("the device has finished all work when a call returns")

    def open(self) -> None:
        """Does nothing, because the work ends without this call."""

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
    """A gate for one stream; long work on a device without host functions."""
    if api.properties(0).host_functions:
        gate: Gate = request.getfixturevalue("gate")
        return gate
    return LongWork(api, make_buffer)


@pytest.fixture
def run_child(api: ModuleType) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python code in a new process that can import `_device` and the tests' modules.

    Settings are variables without their prefix.
    """
    module_folder = str(Path(api.__file__ or "").parent)

    def run(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
        folders = [module_folder, str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **prefixed(settings)}
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.fixture
def run_tests(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs tests in a new process with these settings, and no other device library."""

    def run(*arguments: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
        ours = (device_library.VARIABLE, "PYTHONPATH")
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        options = ("-q", "-p", "no:cacheprovider", "-n0", f"--basetemp={tmp_path / 'tests'}")
        return subprocess.run(
            [sys.executable, "-m", "pytest", *arguments, *options],
            env=environment | prefixed(settings),
            cwd=device_library.DEVICE_ROOT.parent,
            capture_output=True,
            text=True,
        )

    return run


def prefixed(settings: dict[str, str]) -> dict[str, str]:
    return {f"{device_library.ENV_PREFIX}_{name}": value for name, value in settings.items()}
