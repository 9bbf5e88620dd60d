"""Fixtures of the kernel families' tests."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from types import ModuleType

import pytest
from kernels.harness import FREE, Device
from kernels.support import Support


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Runs a test again for the other mode if its results differ.

    With --write-support there are no results, so assertions about them are ignored, and the test
    probes all of its cases.
    """
    device = pyfuncitem.funcargs.get("device")
    if not isinstance(device, Device):
        return (yield)
    try:
        result = yield
    except Exception:
        if "philox_device" in pyfuncitem.funcargs:
            hint = 'With a generator of its own, the device\'s support.toml has random = "own".'
            pyfuncitem.add_report_section("call", "random.h defines other numbers", hint)
        if not (device.probes_only and device.outcomes):
            raise
    if device.probes_only and device.outcomes:
        pytest.skip("only asked")
    if not device.differs:
        return result
    modes, device.modes = device.modes, (FREE,)
    try:
        names = inspect.signature(pyfuncitem.obj).parameters
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    finally:
        device.modes = modes
    return result


@pytest.fixture(scope="session")
def device(api: ModuleType, pytestconfig: pytest.Config) -> Device:
    """The device under test, with its support.toml."""
    probes_only = bool(pytestconfig.getoption("--write-support"))
    every_layout = bool(pytestconfig.getoption("-m"))
    return Device(api, Support.load(), probes_only, every_layout)


@pytest.fixture
def philox_device(device: Device) -> Device:
    """The device, if its numbers are those of random.h."""
    if device.support.random != "philox":
        pytest.skip('support.toml: random = "own"')
    return device


@pytest.fixture(autouse=True)
def report_outcomes(
    device: Device, record_property: Callable[[str, object], None]
) -> Iterator[None]:
    """Attaches a test's outcomes to its report, for the table at the end."""
    device.outcomes.clear()
    device.differs = False
    yield
    device.described.clear()
    for outcome in device.outcomes:
        record_property("device case", [*outcome.case.fields, outcome.answer])
