"""Registers the package with PyTorch."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils.backend_registration import (
    generate_methods_for_privateuse1_backend,
    rename_privateuse1_backend,
)

from . import _C, _flops, _patches
from ._build import NAME
from ._discovery import Extension, generated_methods


def register(package: ModuleType, extensions: Sequence[Extension]) -> None:
    """Register the backend's name, its device module and its methods on PyTorch's classes.

    Runs once per process, and does not use a device.

    Raises:
        RuntimeError: another backend has already registered PrivateUse1.
    """
    rename_privateuse1_backend(NAME)
    register_device_module: Any = torch._register_device_module
    register_device_module(NAME, package)
    for extension in extensions:
        # Otherwise `import torch.<name>.streams` would load the file a second time.
        sys.modules[f"torch.{NAME}.{extension.name}"] = extension.module
    methods: dict[str, Any] = {"for_tensor": True, "for_module": True, "for_packed_sequence": True}
    methods.update(generated_methods(extensions))
    generate_methods_for_privateuse1_backend(**methods)
    _patches.apply(name for extension in extensions for name in extension.patches)
    _flops.register()
    for extension in extensions:
        if extension.setup is not None:
            extension.setup()
    atexit.register(_let_autograd_finish)
    atexit.register(_report_failures)
    atexit.register(_leave_a_forked_child, os.getpid())


def _leave_a_forked_child(parent: int) -> None:
    """End a forked child without running C++ destructors.

    If the parent used autograd, PyTorch's engine would wait ten seconds for threads that do not
    exist in the child.
    """
    if os.getpid() != parent:
        _C.exit_at_once(0)


def _let_autograd_finish() -> None:
    """Wait until autograd's threads have released the objects of the last backward pass.

    They do so just after ``backward()`` returns, and need the interpreter for it. Without the wait,
    a script that ends with ``backward()`` would sometimes fail.
    """
    if _C.is_in_bad_fork() or _C.is_capturing():
        return
    for device in _C.used_devices():
        _C.wait_for_autograd(device)


def _report_failures() -> None:
    """Wait for the devices' work, and report its failures.

    If a failure was not raised, or only on threads that launch nothing, this prints it, and the
    process exits with status 1 instead of 0. After Ctrl-C this does not wait.
    """
    if _C.is_in_bad_fork():
        return
    stopped = isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)
    # The work of a capture that was not ended never runs, and cannot be waited for.
    if stopped or _C.was_interrupted() or _C.is_capturing():
        _C.exit_at_once(0)
        return
    _C.prepare_exit()
    for device in _C.used_devices():
        try:
            _C.synchronize(device)
        except RuntimeError as error:
            print(
                f"{NAME}: asynchronous work failed and no call raised the failure: {error}",
                file=sys.stderr,
            )
            _C.exit_at_once(1)
        except KeyboardInterrupt:
            _C.exit_at_once(128 + signal.SIGINT)
            return
