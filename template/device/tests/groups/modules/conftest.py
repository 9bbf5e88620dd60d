"""Fixtures of the tests of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from groups.modules.kernel_code import Scaling, kernels
from making import Make


@pytest.fixture
def load(api: ModuleType) -> Iterator[Callable[..., Any]]:
    """Loads the kernels of kernel_code.py, and unloads them after the test."""
    modules = []

    def make(device: int = 0) -> Any:
        modules.append(api.load_module(device, kernels(api, device), ""))
        return modules[-1]

    make.modules = modules  # type: ignore[attr-defined]
    yield make
    for module in modules:
        api.unload_module(module)


@pytest.fixture
def scaling(api: ModuleType, load: Callable[..., Any], make: Make) -> Scaling:
    """Two arrays on device 0, and the kernel that scales them."""
    return Scaling(api, load(), make.buffer)
