"""The package and its process: import, names, devices, forks and exits."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest
import torch
from backend import DEVICE, PACKAGE, backend
from support import needs_two_devices, run_python

LAST = backend.device_count() - 1
ONES = f"torch.ones(2, device='{DEVICE}')"


def test_import_torch_loads_the_package_and_starts_no_device() -> None:
    run_python(
        f"""
        import torch
        torch.manual_seed(1)
        assert torch.{DEVICE}.is_available() and not torch.{DEVICE}.is_initialized()
        {ONES}
        assert torch.{DEVICE}.is_initialized()
        """,
        forked=False,
    )


def test_the_package_can_be_imported_first() -> None:
    code = f"import {PACKAGE}, torch\nassert torch.{DEVICE} is {PACKAGE}\n{ONES}.sum().item()"
    run_python(code, forked=False)


def test_the_package_is_the_device_module() -> None:
    assert getattr(torch, DEVICE) is importlib.import_module(PACKAGE)
    assert torch.get_device_module(DEVICE) is backend
    accelerator = torch.accelerator.current_accelerator()
    assert accelerator is not None and accelerator.type == DEVICE
    tensor = torch.ones(1, device=DEVICE)
    assert getattr(tensor, f"is_{DEVICE}")
    assert getattr(torch.ones(1), DEVICE)().device == tensor.device
    assert getattr(torch.nn.Linear(1, 1), DEVICE)().weight.device == tensor.device


def test_a_second_registration_is_refused() -> None:
    run_python(
        f"""
        import torch
        for register, message in (
            (
                lambda: torch.utils.rename_privateuse1_backend("another"),
                "already been set! Current backend: {DEVICE}",
            ),
            (
                lambda: torch._register_device_module("{DEVICE}", object()),
                "already been registered",
            ),
        ):
            try:
                register()
            except RuntimeError as error:
                assert message in str(error)
            else:
                raise SystemExit(3)
        assert {ONES}.sum().item() == 2
        """
    )


@pytest.mark.parametrize("index", [LAST + 1, 99])
def test_a_device_that_is_absent_is_refused(index: int) -> None:
    devices = f"1 {DEVICE} device" if LAST == 0 else f"{LAST + 1} {DEVICE} devices"
    message = (
        f"invalid device {DEVICE}:{index}: this machine has {devices}, "
        f"so the index is from 0 to {LAST}"
    )
    for use in (
        backend.set_device,
        lambda index: backend.device(index).__enter__(),
        backend.get_device_name,
        backend.get_device_properties,
        backend.synchronize,
        backend.memory_allocated,
        backend.mem_get_info,
        backend.current_stream,
        lambda index: torch.ones(1, device=f"{DEVICE}:{index}"),
        torch.accelerator.set_device_index,
    ):
        with pytest.raises(RuntimeError, match=message):
            use(index)
    assert backend.current_device() == 0


@needs_two_devices
@pytest.mark.parametrize("device", [1, f"{DEVICE}:1", torch.device(DEVICE, 1)])
def test_new_tensors_are_on_the_current_device(device: Any) -> None:
    with backend.device(device):
        assert torch.ones(1, device=DEVICE).get_device() == 1
        assert torch.accelerator.current_device_index() == backend.current_device() == 1
    assert torch.ones(1, device=DEVICE).get_device() == backend.current_device() == 0


def test_device_properties() -> None:
    properties = backend.get_device_properties(0)
    assert properties.name == backend.get_device_name(0)
    assert properties.total_memory == backend.mem_get_info()[1] > 0


def test_a_name_that_is_absent_is_reported() -> None:
    with pytest.raises(AttributeError, match=f"module '{PACKAGE}' has no attribute 'no_such_name'"):
        _ = backend.no_such_name
    assert not hasattr(backend, "no_such_name")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_of_a_process_that_used_the_device_is_refused() -> None:
    run_python(
        f"""
        import os, torch
        kept = {ONES}
        child = os.fork()
        if child == 0:
            try:
                {ONES}
            except RuntimeError as error:
                os._exit(7 if "fork" in str(error) else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert kept.sum().item() == 2
        """
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_before_the_first_use_may_use_the_device() -> None:
    run_python(
        f"""
        import os, torch
        child = os.fork()
        if child == 0:
            os._exit(int({ONES}.sum().item()))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
        """
    )


@pytest.mark.parametrize("end, status", [("", 0), ("1 / 0", 1)])
def test_a_process_ends_with_its_own_status_while_the_device_works(end: str, status: int) -> None:
    done = run_python(
        f"""
        import torch
        kept = torch.ones(1 << 20, device="{DEVICE}")
        for _ in range(20):
            kept = kept + kept
        stream = torch.Stream(device="{DEVICE}")
        event = stream.record_event()
        {end}
        """,
        check=False,
    )
    assert done.returncode == status, done.stderr
