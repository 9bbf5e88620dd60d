"""Random numbers that a checkpoint draws again in the backward pass of a compiled graph.

PyTorch saves and restores the generator's state with two operators that support a fixed list of
devices. This module is imported after ``torch._prims.rng_prims``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch._C import DispatchKey
from torch._subclasses.fake_tensor import FakeTensorMode

from .._build import NAME

rng_prims: Any = importlib.import_module("torch._prims.rng_prims")


def install() -> None:
    """Add this device to both operators."""
    _add(rng_prims.run_and_save_rng_state, _run_and_save)
    _add(rng_prims.run_with_rng_state, _run_with)


def _add(operator: Any, here: Callable[..., Any]) -> None:
    known = operator.py_kernels[DispatchKey.BackendSelect]
    faked = operator.python_key_table[FakeTensorMode]

    def on_its_device(*arguments: Any, **keywords: Any) -> Any:
        is_here = _is_here(arguments, keywords)
        return (here if is_here else known)(*arguments, **keywords)

    def fake(mode: Any, *arguments: Any, **keywords: Any) -> Any:
        if not _is_here(arguments, keywords):
            return faked(mode, *arguments, **keywords)
        with mode:
            return here(*arguments, **keywords)

    operator.py_kernels[DispatchKey.BackendSelect] = on_its_device
    operator.py_kernels[DispatchKey.PrivateUse1] = here
    operator.python_key_table[FakeTensorMode] = fake


def _is_here(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    # The operator is first, or second after the generator's state, which is a CPU tensor.
    own = arguments[1 if callable(arguments[0]) else 2 :]
    return bool(rng_prims.get_device(own, keywords) == NAME)


def _run_and_save(operator: Any, *arguments: Any, **keywords: Any) -> tuple[torch.Tensor, Any]:
    state = torch.get_device_module(NAME).get_rng_state()
    return state, operator(*arguments, **keywords)


def _run_with(state: torch.Tensor, operator: Any, *arguments: Any, **keywords: Any) -> Any:
    backend: Any = torch.get_device_module(NAME)
    if isinstance(state, torch._subclasses.FakeTensor):
        return operator(*arguments, **keywords)
    before = backend.get_rng_state()
    backend.set_rng_state(state)
    try:
        return operator(*arguments, **keywords)
    finally:
        backend.set_rng_state(before)
