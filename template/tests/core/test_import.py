"""Importing: either order, automatically, in child processes, and errors."""

from __future__ import annotations

import importlib.metadata

import pytest
import torch
from backend import DEVICE, PACKAGE
from support import WITHOUT_AUTOLOAD, needs, run_python

pytestmark = needs(torch.float32, torch.int64)

USE = f"assert torch.ones(2, device='{DEVICE}').sum().item() == 2"


def test_torch_can_be_imported_first() -> None:
    run_python(f"import torch, {PACKAGE}\n{USE}\nassert torch.{DEVICE} is {PACKAGE}", forked=False)


@pytest.mark.parametrize("order", [f"torch, {PACKAGE}", f"{PACKAGE}, torch"])
def test_importing_works_without_autoload(order: str) -> None:
    first = order.split(",")[0]
    run_python(
        f"import {first}, torch\n"
        f"assert hasattr(torch, '{DEVICE}') is ('{first}' != 'torch')\n"
        f"import {order}\n{USE}",
        WITHOUT_AUTOLOAD,
    )


def test_entry_point_names_the_backend() -> None:
    points = {
        point.name: point for point in importlib.metadata.entry_points(group="torch.backends")
    }
    assert points[DEVICE].value == f"{PACKAGE}:_autoload"


def test_another_torch_version_is_refused_in_one_sentence() -> None:
    result = run_python(
        f"""
        import torch
        torch.__version__ = "2.99.1"
        import {PACKAGE}
        """,
        WITHOUT_AUTOLOAD,
        check=False,
    )
    assert result.returncode != 0
    message = result.stderr.strip().splitlines()[-1]
    assert message.startswith(f"ImportError: {PACKAGE} was built for PyTorch 2.")
    assert "but PyTorch 2.99.1 is installed" in message
    assert "pip install --no-build-isolation" in message


def test_the_autoload_error_names_the_backend() -> None:
    result = run_python(
        f"""
        import sys, types
        build = types.ModuleType("{PACKAGE}._build")
        build.NAME, build.TORCH_VERSION = "{DEVICE}", "2.1.0"
        sys.modules["{PACKAGE}._build"] = build
        import torch
        """,
        check=False,
        forked=False,
    )
    assert result.returncode != 0
    assert f"{PACKAGE} was built for PyTorch 2.1 but" in result.stderr
    assert f"Failed to load the backend extension: {DEVICE}" in result.stderr
