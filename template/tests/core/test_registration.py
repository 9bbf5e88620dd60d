"""How the package registers with PyTorch. Another registration needs another process."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest
import torch
from backend import DEVICE, PACKAGE, backend
from support import WITHOUT_AUTOLOAD, run_python, since
from torch.utils import backend_registration


def test_device_module_is_the_package() -> None:
    assert sys.modules[f"torch.{DEVICE}"] is backend
    assert torch.get_device_module() is backend
    assert torch.get_device_module(torch.device(DEVICE, 0)) is backend


def test_submodules_are_loaded_once_under_both_names() -> None:
    assert importlib.import_module(f"torch.{DEVICE}.streams") is sys.modules[f"{PACKAGE}.streams"]


def test_renaming_to_the_same_name_changes_nothing() -> None:
    backend_registration.rename_privateuse1_backend(DEVICE)
    assert torch.device(DEVICE, 0).type == DEVICE


def test_generating_methods_again_is_refused() -> None:
    with pytest.raises(RuntimeError, match="already been registered"):
        backend_registration.generate_methods_for_privateuse1_backend()


def test_device_string_is_case_sensitive() -> None:
    with pytest.raises(RuntimeError, match=f"at start of device string: {DEVICE.upper()}"):
        torch.device(DEVICE.upper())


@since((2, 13), "names ProfilerActivity after the backend")
def test_profiler_activity_has_the_name() -> None:
    activity = torch.profiler.ProfilerActivity
    assert getattr(activity, DEVICE.upper()) == activity.PrivateUse1


def test_get_custom_mod_func_finds_the_functions() -> None:
    function = backend_registration._get_custom_mod_func("device_count")
    assert function() == backend.device_count()


def test_get_custom_mod_func_explains_what_is_missing() -> None:
    with pytest.raises(RuntimeError, match=f"torch.{DEVICE}.no_such_function"):
        backend_registration._get_custom_mod_func("no_such_function")


def test_another_backend_that_is_already_registered_is_reported() -> None:
    result = run_python(
        f"""
        import torch
        torch.utils.rename_privateuse1_backend("first")
        import {PACKAGE}
        """,
        WITHOUT_AUTOLOAD,
        check=False,
    )
    assert result.returncode != 0
    assert "already been set! Current backend: first" in result.stderr


def test_dir_lists_what_is_public_and_nothing_else() -> None:
    names = [name for name in dir(backend) if not name.startswith("_")]
    assert {"Stream", "device", "current_device", "memory_allocated", "streams"} <= set(names)
    assert not {"sys", "torch", "annotations"} & set(names)
    assert all(hasattr(backend, name) for name in dir(backend))


def test_version_is_that_of_the_distribution() -> None:
    (point,) = importlib.metadata.entry_points(group="torch.backends", name=DEVICE)
    assert point.dist is not None
    assert backend.__version__ == point.dist.version


def test_at_least_800_operators_are_registered() -> None:
    names = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    assert sum(name.startswith("aten::") for name in names) >= 800
