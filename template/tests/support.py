"""Helpers of the tests: supported dtypes, child processes and comparisons with the CPU."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import io
import math
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, PACKAGE, backend
from fork_server import SECONDS, ForkServer

FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
COMPLEX = (torch.complex64, torch.complex128)
ABSENT = torch.bits8
"""A dtype that no tensor of the device can have."""
STORAGE_ONLY = tuple(
    getattr(torch, name)
    for name in (
        *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
        *("float4_e2m1fn_x2", "uint16", "uint32", "uint64", "complex32", "complex128"),
    )
)
"""Dtypes that are at least storage-only, whatever dtypes the project was generated with."""


def names(text: str) -> list[str]:
    """Return the words of ``text``."""
    return text.split()


def supported_dtypes() -> tuple[torch.dtype, ...]:
    """Return the dtypes that the backend was generated to calculate with."""
    dtypes: tuple[torch.dtype, ...] = backend.supported_dtypes()
    return dtypes


def computed_dtypes() -> list[torch.dtype]:
    """Return the supported dtypes that the device calculates with."""
    return [item for item in supported_dtypes() if backend.dtype_support(item) == "supported"]


def supported(*dtypes: torch.dtype | Sequence[torch.dtype]) -> list[torch.dtype]:
    """Return the supported ones of ``dtypes``; without arguments, all supported dtypes."""
    wanted: list[torch.dtype] = []
    for item in dtypes:
        wanted.extend([item] if isinstance(item, torch.dtype) else item)
    offered = supported_dtypes()
    return [dtype for dtype in wanted or offered if dtype in offered]


def needs(*dtypes: torch.dtype) -> pytest.MarkDecorator:
    """Mark a test that cannot run without ``dtypes``."""
    missing = [str(dtype) for dtype in dtypes if dtype not in supported_dtypes()]
    return pytest.mark.skipif(bool(missing), reason=f"generated without {', '.join(missing)}")


RELEASE = tuple(map(int, torch.__version__.split(".")[:2]))
"""The minor version of PyTorch, as ``(2, 13)``."""


def since(release: tuple[int, int], what: str) -> pytest.MarkDecorator:
    """Skip a test with PyTorch releases before this one, which do not have the tested function."""
    reason = f"PyTorch {'.'.join(map(str, release))} is the first that {what}"
    return pytest.mark.skipif(release > RELEASE, reason=reason)


MIB = 2**20


def take(size: int, device: str = DEVICE) -> torch.Tensor:
    """Return a tensor of ``size`` bytes of device memory, of some supported dtype."""
    dtype = supported()[0]
    return torch.empty(size // dtype.itemsize, dtype=dtype, device=device)


def _seconds_of_product(size: int) -> float:
    ones = torch.ones(size, size, device=DEVICE)
    backend.synchronize()
    begin = time.perf_counter()
    ones @ ones
    backend.synchronize()
    return time.perf_counter() - begin


@functools.cache
def _long_product() -> tuple[int, float]:
    """Return the size of square matrices whose product takes milliseconds, and its seconds."""
    size, seconds = 64, 0.0
    while seconds < 0.004 and size < 2048:
        size *= 2
        # The shortest of several, because other processes can delay each.
        seconds = min(_seconds_of_product(size) for _ in range(6))
    return size, seconds


def keep_busy(stream: torch.Stream | None = None, seconds: float = 0.05) -> None:
    """Enqueue products of matrices for about this time, by default on the current stream."""
    size, each = _long_product()
    with backend.stream(stream):
        ones = torch.ones(size, size, device=DEVICE)
        for _ in range(math.ceil(seconds / each)):
            ones @ ones


EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def example(name: str) -> Any:
    """Return an example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WITHOUT_AUTOLOAD = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
"""The environment in which ``import torch`` loads no backend."""

needs_two_devices = pytest.mark.skipif(
    backend.device_count() < 2, reason="there is only one device"
)


def has_function(group: str, function: str) -> bool:
    """Return whether the device library has a function of one of its optional groups."""
    return (group, function, True) in backend._C.device_functions()


reports_errors = pytest.mark.skipif(
    not backend.get_device_properties(0).reports_errors
    or not has_function("failures", "acknowledge_device"),
    reason="the device does not report index and division errors, or cannot acknowledge them",
)


def is_simulator(device: int = 0) -> bool:
    """Return whether a device is the project's own simulator, which takes settings."""
    return "simulator" in backend.get_device_name(device).lower()


def forget_failures() -> None:
    """Acknowledge failures, so that no later call raises them, if the device supports that."""
    if has_function("failures", "acknowledge_device"):
        backend.acknowledge_failure()


def sample(
    *shape: int, dtype: torch.dtype = torch.float32, low: float = -5, high: float = 5, seed: int = 0
) -> torch.Tensor:
    """Return a CPU tensor of repeatable values that ``dtype`` can hold."""
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).to(torch.bool)
    if dtype.is_complex:
        real = torch.rand(*shape, 2, generator=generator, dtype=torch.float64) * (high - low) + low
        return torch.view_as_complex(real).to(dtype)
    if dtype.is_floating_point:
        values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
        return values.to(dtype)
    least = max(int(low), torch.iinfo(dtype).min)
    return torch.randint(least, int(high) + 1, shape, generator=generator).to(dtype)


def assert_same(actual: torch.Tensor, expected: torch.Tensor, **tolerances: Any) -> None:
    """Compare a tensor of the device with one of the CPU: device, dtype, shape and values."""
    assert actual.device.type == DEVICE
    assert actual.dtype is expected.dtype
    if expected.dtype is torch.complex32:  # which the CPU cannot compare
        actual, expected = actual.to(torch.complex64), expected.to(torch.complex64)
        tolerances = {"rtol": 1e-3, "atol": 1e-5} | tolerances  # assert_close's of float16
    elif expected.dtype.is_floating_point and expected.itemsize == 1 and tolerances:
        actual, expected = actual.cpu().float(), expected.float()  # float8 is compared bitwise
    torch.testing.assert_close(actual.cpu(), expected.cpu(), equal_nan=True, **tolerances)


@functools.cache
def may_fall_back() -> bool:
    """Return whether fallbacks are allowed. Tests then compare values only. The environment decides;
    by default fallbacks are allowed if the project lacks a feature with operators, or the device
    lacks a kernel family.
    """
    variable = f"{ENV_PREFIX}_TEST_FALLBACK"
    features = importlib.import_module(f"{PACKAGE}._features").FEATURES
    complete = all(features[id].enabled for id in ("networks", "more_operators", "rng")) and all(
        present for group, _, present in backend._C.device_functions() if group == "families"
    )
    word = os.environ.get(variable) or ("refuse" if complete else "allow")
    if word not in ("allow", "refuse"):
        raise pytest.UsageError(f"{variable} is allow or refuse, not '{word}'")
    return word == "allow"


def avoidable(fallbacks: dict[str, Any]) -> dict[str, Any]:
    """Return fallbacks without those for dtypes and features that the project does not have."""
    left_out = re.compile("this project was generated without .* kernels|no kernel; feature ")
    return {
        name: record
        for name, record in fallbacks.items()
        if not all(map(left_out.search, record.reasons))
    }


@contextmanager
def natively() -> Iterator[None]:
    """Fail if an operator falls back within this context, unless fallbacks are allowed."""
    backend.reset_fallback_stats()
    yield
    assert may_fall_back() or avoidable(backend.fallback_stats()) == {}, "the CPU did the work"


def fallbacks(operator: str) -> int:
    """Return how often operators of this name have run on the CPU."""
    stats = backend.fallback_stats()
    return sum(record.calls for name, record in stats.items() if operator in name)


def compare_gradients(
    function: Callable[[torch.Tensor], torch.Tensor], values: torch.Tensor, **tolerances: float
) -> None:
    """Compare the gradient of ``function`` at ``values`` on the device with that on the CPU."""
    gradients = []
    for device in ("cpu", DEVICE):
        leaf = values.to(device, copy=True).requires_grad_()
        result = function(leaf)
        (result * sample(*result.shape, seed=1).to(device)).sum().backward()
        assert leaf.grad is not None
        gradients.append(leaf.grad)
    assert_same(gradients[1], gradients[0], **{"rtol": 1e-4, "atol": 1e-5, **tolerances})


def moved(argument: Any) -> Any:
    """Return a tensor, or tensors in lists, on the device with the same strides."""
    if isinstance(argument, torch.Tensor):
        # Keeps the strides: a plain copy drops those of views with gaps.
        stored = argument.untyped_storage().nbytes() // argument.itemsize
        whole = argument.as_strided((stored,), (1,), 0).to(DEVICE)
        return whole.as_strided(argument.size(), argument.stride(), argument.storage_offset())
    if isinstance(argument, (list, tuple)):
        return type(argument)(moved(item) for item in argument)
    return argument


def save_and_load(value: Any, **keywords: Any) -> Any:
    """Return the value that `torch.load` reads from its file."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **keywords)


@functools.cache
def _fork_server() -> ForkServer:
    return ForkServer(_environment_of_children({}))


def _environment_of_children(changed: dict[str, str]) -> dict[str, str]:
    path = filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), **changed}


def run_python(
    code: str,
    environment: dict[str, str] | None = None,
    *,
    check: bool = True,
    forked: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in another process, with ``environment`` added, and return its output. It can
    import this module. With ``check`` a failing process fails the test and shows what it wrote.

    The process is ``forked`` from one that has imported PyTorch, unless variables have changed that
    PyTorch may read before its first allocation. The others are new interpreters.
    """
    code, variables = textwrap.dedent(code), _environment_of_children(environment or {})
    ours = (f"{ENV_PREFIX}_", "PYTEST_", "PYTORCH_ALLOC_CONF")
    if forked and all(name.startswith(ours) for name in _fork_server().changed(variables)):
        result = _fork_server().run(code, variables)
    else:
        result = subprocess.run(
            [sys.executable, "-c", code],
            env=variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    if check and result.returncode != 0:
        pytest.fail(f"the child ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result
