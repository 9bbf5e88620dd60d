"""Every test starts from device 0, its default stream and a known seed; fallbacks are not warned of."""

from __future__ import annotations

import os
import re
import resource
import signal
from collections.abc import Generator, Iterator

import pytest
import torch
from backend import ENV_PREFIX, backend
from support import forget_failures, leave_out, may_fall_back, natively


def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests apart from what this machine sets, and fallbacks silent unless asked for."""
    # A job in the background has Ctrl-C ignored, and so would the processes that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests let processes die: each would leave a core of hundreds of MB.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # An editable install tells of each build, and tests read all that a process prints.
    os.environ.setdefault("SKBUILD_EDITABLE_VERBOSE", "0")
    allowed = may_fall_back()
    if f"{ENV_PREFIX}_FALLBACK" not in os.environ:
        backend.set_fallback_policy("silent")
        if allowed:  # in the processes that tests start as well
            os.environ[f"{ENV_PREFIX}_FALLBACK"] = "silent"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without -m, the slow cases stay out."""
    if not config.getoption("-m"):
        leave_out(config, items, "full")


RUNS_NOWHERE = re.compile(r"is not supported by the device: |\"\w+\" not implemented for '")
"""An operator that the device declines, and that the CPU lacks, for this type or at all."""


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Skip what fails for want of a kernel, where the CPU may do the work: an operator that runs
    on neither, and a test of what only kernels of the device promise (``native``), such as the
    order of equal elements, after the CPU did a part of its work.
    """
    if not may_fall_back():
        return (yield)
    marker = pyfuncitem.get_closest_marker("native")
    fallbacks: dict[str, object] = {}
    # The test may reset the figures, and what earlier tests have counted would hide its own then.
    backend.reset_fallback_stats()
    try:
        with backend.count_fallbacks() as fallbacks:
            # What processes that the test starts do is not seen: `like` does it here.
            if marker is not None:
                marker.kwargs.get("like", lambda: None)()
            return (yield)
    except (Exception, pytest.fail.Exception) as error:
        if isinstance(error, NotImplementedError) and RUNS_NOWHERE.search(str(error)):
            pytest.skip(f"there is no kernel for it: {error}")
        if marker is None or not fallbacks:
            raise
        pytest.skip(f"the CPU, which worked here, does not promise it: {', '.join(fallbacks)}")


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Leave no device, stream, seed or failure behind for the next test."""
    torch.manual_seed(0)
    yield
    forget_failures()
    for index in reversed(range(backend.device_count())):
        backend.set_stream(backend.default_stream(index))
    backend.set_device(0)


@pytest.fixture
def everything_is_native() -> Iterator[None]:
    """Fail a test in which an operator ran on the CPU, unless it may."""
    with natively():
        yield
