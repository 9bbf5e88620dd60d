"""Fixtures of the optional groups' tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from groups.other_process import Other
from groups.shared_numbers import SIZE, write
from numpy.typing import NDArray

Ints = NDArray[np.int32]


@pytest.fixture(autouse=True)
def group(request: pytest.FixtureRequest, api: ModuleType) -> str:
    """The group that the file tests, `GROUP`. Skips the test if it is incomplete."""
    name = str(request.module.GROUP)
    missing = [
        function for group, function, there in api.functions() if group == name and not there
    ]
    if missing:
        pytest.skip(f"this device has no {name}: {', '.join(missing)} are missing")
    return name


@pytest.fixture
def validated(api: ModuleType, restored_layers: None) -> None:
    """Adds the layer `validate` before the test makes streams."""
    if "validate" not in api.known_layers():
        pytest.skip("this project has no layer validate: `torchsmith add device_layers` adds it")
    api.set_layers(["validate", *(layer for layer in api.layers() if layer != "validate")])


class Counters:
    """Integers on the device, which kernels change."""

    def __init__(self, api: ModuleType, values: Ints) -> None:
        self._api = api
        self._buffer = api.Buffer(0, values.nbytes)
        self.view = self._buffer.view(0, api.DType.int32, [len(values)], [1])
        self.address: int = self._buffer.address
        self.bytes = values.nbytes
        self.write(values)
        # Skips here, because a skip within a capture would leave it open.
        self.add(api.default_stream(0), 1, probe=True)

    def add(self, stream: Any, number: Any, **launch: Any) -> None:
        """Enqueues self += number."""
        self._change("add", stream, number, launch)

    def divide(self, stream: Any, divisors: Counters) -> None:
        """Enqueues self /= divisors."""
        self._change("div_trunc", stream, divisors.view, {})

    def _change(self, op: str, stream: Any, other: Any, launch: dict[str, Any]) -> None:
        api = self._api
        views = (self.view, self.view, other)
        reason = api.binary(stream, api.BinaryOp[op], *views, api.BinaryParams(), **launch)
        if reason is not None:
            pytest.skip(f"the device does not support {op} of integers: {reason}")

    def write(self, values: Ints) -> None:
        self._buffer.write(values.view(np.uint8))

    def read(self) -> Ints:
        return np.frombuffer(self._buffer.read(), np.int32)


@pytest.fixture
def make_counters(api: ModuleType, make_stream: object) -> Iterator[Callable[[Ints], Counters]]:
    """Makes counters that outlive the work on the test's streams."""
    made: list[Counters] = []

    def make(values: Ints) -> Counters:
        made.append(Counters(api, values))
        return made[-1]

    yield make
    with suppress(api.DeviceError):  # the test checks failures
        api.synchronize_device(0)
    made.clear()


@pytest.fixture
def start_other(api: ModuleType) -> Iterator[Callable[..., Other]]:
    """Starts processes with the layer `validate`. They end with the test."""
    others = []
    layers = f"{api.ENV_PREFIX}_DEVICE_LAYERS"

    def start(**environment: str) -> Other:
        others.append(Other(api, **{layers: "validate", **environment}))
        return others[-1]

    yield start
    for other in others:
        other.close()


@pytest.fixture
def other(start_other: Callable[..., Other]) -> Other:
    return start_other()


@pytest.fixture
def make_numbers(api: ModuleType) -> Iterator[Callable[..., int]]:
    """Allocates memory with the numbers from 0 on, which is freed after the test."""
    made: list[tuple[int, int]] = []

    def make(device: int = 0, size: int = SIZE) -> int:
        address = api.allocate(device, size)
        made.append((device, address))
        write(api, address, np.arange(size // 4, dtype=np.int32), device)
        return int(address)

    yield make
    for device, address in made:
        api.deallocate(device, address)


@pytest.fixture
def numbers(make_numbers: Callable[..., int]) -> int:
    """The address of the numbers below 1000."""
    return make_numbers()


@pytest.fixture
def gate(make_counters: object, gate: Any) -> Any:
    """One gate. It is opened before `make_counters` waits for the device at the end of the test."""
    return gate
