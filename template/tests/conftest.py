"""Every test starts on device 0, its default stream and seed 0. Fallbacks do not warn."""

from __future__ import annotations

import gc
import os
import re
import resource
import signal
from collections.abc import Generator, Iterator

import pytest
import torch
from backend import ENV_PREFIX, backend
from support import forget_failures, may_fall_back


def pytest_configure(config: pytest.Config) -> None:
    """Reset settings of this machine, and silence fallbacks unless the environment has a policy."""
    # A background job ignores SIGINT, and processes that tests interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests abort processes, and each core dump would have hundreds of MB.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # An editable install prints each build, and tests read all that a process prints.
    os.environ.setdefault("SKBUILD_EDITABLE_VERBOSE", "0")
    allowed = may_fall_back()
    if f"{ENV_PREFIX}_FALLBACK" not in os.environ:
        backend.set_fallback_policy("silent")
        if allowed:  # also in processes that tests start
            os.environ[f"{ENV_PREFIX}_FALLBACK"] = "silent"


def pytest_collection_finish() -> None:
    """Exclude all objects of this moment from later garbage collections, which tests often start."""
    gc.freeze()


RUNS_NOWHERE = re.compile(
    r"is not supported by the device: |\"\w+\" not implemented for '|cannot be recorded in a graph"
)
"""Matches errors of operators that neither the device nor the CPU supports for this dtype, and of
operators of the CPU in a graph.
"""


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Skip tests that fail for lack of a kernel, if fallbacks are allowed: operators that run on
    neither side, and ``native`` tests with a fallback. A ``native`` test checks what only kernels
    of the device guarantee, such as the order of equal elements.
    """
    if not may_fall_back():
        return (yield)
    marker = pyfuncitem.get_closest_marker("native")
    fallbacks: dict[str, object] = {}
    # The test may reset the stats. Fallbacks of earlier tests would then hide its own.
    backend.reset_fallback_stats()
    try:
        with backend.count_fallbacks() as fallbacks:
            # Fallbacks of child processes are not counted: `like` runs the same operators here.
            if marker is not None:
                marker.kwargs.get("like", lambda: None)()
            return (yield)
    except (Exception, pytest.fail.Exception) as error:
        if isinstance(error, RuntimeError) and RUNS_NOWHERE.search(str(error)):
            pytest.skip(f"there is no kernel for it: {error}")
        if marker is None or not fallbacks:
            raise
        pytest.skip(f"it ran on the CPU, which does not guarantee this: {', '.join(fallbacks)}")


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Reset the seed and the fallback stats before a test, and failures, streams, the device and
    the environment after it.
    """
    torch.manual_seed(0)
    backend.reset_fallback_stats()
    variables = set(os.environ)
    yield
    for name in set(os.environ) - variables:  # Inductor adds some, and then no process is forked
        del os.environ[name]
    forget_failures()
    for index in reversed(range(backend.device_count())):
        backend.set_stream(backend.default_stream(index))
    backend.set_device(0)
