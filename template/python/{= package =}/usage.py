"""Checks whether a program uses the device: libraries without support for it silently use the CPU.

``<PREFIX>_EXPECT=device`` warns when the process ends, ``<PREFIX>_EXPECT=device:error`` makes the
process fail, and :func:`expect_device` raises at the end of a block.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import torch
from torch.utils.hooks import RemovableHandle

from . import _C, devices, fallback, memory
from ._build import ENV_PREFIX, NAME

__all__ = ["diagnose", "expect_device"]

VARIABLE = f"{ENV_PREFIX}_EXPECT"
VALUES = ("device", "device:error")
# Frames in these folders are not the user's call of a model.
_INSIDE = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
_HOME = f"move the model with .to('{NAME}'); for other libraries, pass the device '{NAME}' by name"
_AUTOCAST = f"write torch.autocast('{NAME}'), of the feature amp"


@dataclass
class _Seen:
    """Counts of calls of modules that own parameters, such as ``nn.Linear``."""

    launches: int
    """Launches of the device's kernels when the watch began."""
    elsewhere: int = 0
    """Calls with parameters on the CPU."""
    first_elsewhere: str = ""
    wrong_autocast: int = 0
    """Calls with parameters on the device while autocast was enabled for another device only."""
    first_wrong_autocast: str = ""

    def look(self, module: torch.nn.Module, _inputs: Any) -> None:
        """Count a call. This is a forward pre-hook."""
        for parameter in module._parameters.values():
            if parameter is None:
                continue
            if parameter.device.type == "cpu":
                self.elsewhere += 1
                self.first_elsewhere = self.first_elsewhere or _describe(module)
            elif parameter.device.type == NAME and (other := _autocast_elsewhere()):
                self.wrong_autocast += 1
                self.first_wrong_autocast = (
                    self.first_wrong_autocast or f"{_describe(module)}, under autocast('{other}')"
                )
            return

    def problems(self) -> list[str]:
        """Return one sentence for each problem found."""
        found = []
        if self.elsewhere and _C.kernel_launches() == self.launches:
            found.append(
                f"nothing was launched on '{NAME}', and {_times(self.elsewhere)} a layer ran on the CPU, "
                f"at first {self.first_elsewhere}: {_HOME}"
            )
        if self.wrong_autocast:
            found.append(
                f"{_times(self.wrong_autocast)} a layer on '{NAME}' ran under autocast of another "
                f"device, which has no effect on it, at first {self.first_wrong_autocast}: {_AUTOCAST}"
            )
        return found


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _autocast_elsewhere() -> str:
    """Return another device type with autocast enabled if it is disabled for this one, else ''."""
    if torch.is_autocast_enabled(NAME):
        return ""
    return next((other for other in ("cpu", "cuda") if torch.is_autocast_enabled(other)), "")


def _describe(module: torch.nn.Module) -> str:
    """Return the name of a module and the line of user code that called it."""
    frames = reversed(traceback.extract_stack())
    outside = (frame for frame in frames if not frame.filename.startswith(_INSIDE))
    frame = next(outside, None)
    name = type(module).__name__
    return name if frame is None else f"a {name} at {Path(frame.filename).name}:{frame.lineno}"


def _watch() -> tuple[_Seen, RemovableHandle]:
    """Count all calls of modules until the handle is removed."""
    seen = _Seen(_C.kernel_launches())
    return seen, torch.nn.modules.module.register_module_forward_pre_hook(seen.look)


@contextlib.contextmanager
def expect_device() -> Iterator[None]:
    """Require that the block's models run on this device.

    Counts the calls of modules (``nn.Module``) on all threads, a few microseconds for each call.

    Raises:
        RuntimeError: on exit, if layers ran on the CPU and nothing was launched on the device, or
            if layers on the device ran under ``autocast`` of another device, which has no effect on
            them. An exception of the block takes precedence.
    """
    seen, hook = _watch()
    try:
        yield
    finally:
        hook.remove()
    if found := seen.problems():
        raise RuntimeError("; ".join(found))


def setup() -> None:
    """Check the whole process if the environment variable is set.

    Raises:
        ImportError: the variable has an unknown value.
    """
    value = os.environ.get(VARIABLE, "")
    if not value:
        return
    if value not in VALUES:
        raise ImportError(f"{VARIABLE} is '{value}': it must be {' or '.join(VALUES)}")
    seen, _ = _watch()
    process = os.getpid()

    def report() -> None:
        if os.getpid() != process:
            return
        found = seen.problems()
        for sentence in found:
            print(f"{VARIABLE}: {sentence}", file=sys.stderr)
        if found and value == "device:error":
            _C.exit_at_once(1)

    atexit.register(report)


def _roots() -> list[torch.nn.Module]:
    """Return the live modules that are not submodules."""
    modules = [item for item in gc.get_objects() if issubclass(type(item), torch.nn.Module)]
    inner = {id(child) for module in modules for child in module._modules.values()}
    return [module for module in modules if id(module) not in inner]


def _models() -> str:
    """Describe the devices of the live models."""
    where: dict[str, Counter[str]] = {}
    for module in _roots():
        places = sorted({str(parameter.device) for parameter in module.parameters()})
        if places:
            where.setdefault(" and ".join(places), Counter())[type(module).__name__] += 1
    if not where:
        return "none exists"
    return "; ".join(
        f"{sum(names.values())} on {place} ({', '.join(name for name, _ in names.most_common(3))})"
        for place, names in sorted(where.items())
    )


def _fallbacks() -> str:
    stats = fallback.fallback_stats()
    if not stats:
        return "nothing"
    calls = sum(record.calls for record in stats.values())
    seconds = sum(record.seconds for record in stats.values())
    dearest = sorted(stats, key=lambda name: -stats[name].seconds)[:3]
    return (
        f"{len(stats)} operators, {_times(calls)}, {seconds:.3f} s, most of it {', '.join(dearest)}; "
        f"torch.{NAME}.fallback_report() ranks them"
    )


def _memory(device: int) -> str:
    stats = memory.memory_stats(device)
    made = stats.get("allocation.all.allocated", 0)
    now = stats.get("allocated_bytes.all.current", 0) / 2**20
    peak = stats.get("allocated_bytes.all.peak", 0) / 2**20
    return f"{made} allocations since the start, {now:.1f} MiB in use, {peak:.1f} MiB at most"


def _autocast() -> str:
    on = [name for name in (NAME, "cpu", "cuda") if torch.is_autocast_enabled(name)]
    if not on:
        return "off"
    if NAME in on:
        return f"on, {torch.get_autocast_dtype(NAME)}"
    return f"on for {' and '.join(on)}, which has no effect on tensors on '{NAME}': {_AUTOCAST}"


def diagnose(*, file: TextIO | None = None) -> None:
    """Print a summary of the device's use since the start of the process, in about ten lines.

    Does not start the runtime. If the device is unused so far, the summary says so.

    Args:
        file: the output; the default is standard output.
    """
    launches = _C.kernel_launches()
    rows = [("PyTorch", f"{torch.__version__}; default device {torch.get_default_device()}")]
    if devices.is_initialized():
        for device in range(devices.device_count()):
            name = f"{NAME}:{device}"
            rows.append((name, f"{devices.get_device_name(device)}; {_memory(device)}"))
    else:
        rows.append((NAME, f"not used so far; {devices.device_count()} devices"))
    rows.append(("launches", f"{launches} of kernels on '{NAME}'"))
    rows.append(("on the CPU", f"{_fallbacks()}, for tensors on '{NAME}'"))
    rows.append(("models", _models()))
    rows.append(("autocast", _autocast()))
    policy = f"fallback {fallback.fallback_policy()}, {VARIABLE}={os.environ.get(VARIABLE, '')}"
    rows.append(("policy", policy))
    if not launches:
        rows.append(("advice", _HOME))
    width = max(len(head) for head, _ in rows)
    for head, text in rows:
        print(f"{head:<{width}}  {text}", file=file or sys.stdout)
