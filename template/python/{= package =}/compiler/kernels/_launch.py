"""Functions that Inductor's code calls to define kernels once and launch them by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch._inductor.runtime.cache_dir_utils import cache_dir

from ... import _C
from ..._build import NAME
from ..._private import cache_folder
from ...kernels import load_kernel
from . import dialect_of

_pool = ThreadPoolExecutor(thread_name_prefix="kernels")
"""Runs compilers in parallel with each other and with Inductor."""


def kernel_cache() -> Path:
    """Return the folder for code that the host compiles, in Inductor's cache folder."""
    return cache_folder(Path(cache_dir(), f"{NAME}-kernels"))


def define_kernel(
    name: str, device: int, kinds: Sequence[str], items: int, source: str
) -> Callable[..., None]:
    """Return a function that enqueues a kernel on the current stream of its device.

    The function takes the number of groups, then the arguments. Compilation starts now; the first
    call waits for it.

    Args:
        name: the name of the function in the source.
        device: the index of the device.
        kinds: the kinds of the parameters: ``"read"`` and ``"written"`` for tensors, ``"long"``,
            ``"float"`` and ``"double"`` for numbers.
        items: the number of work items of a group.
        source: the kernel in the source language of the device.
    """
    dialect = dialect_of(device)
    whole = dialect.whole(source)
    function = _pool.submit(load_kernel, whole, name, dialect.options, device, kernel_cache())
    launch: _C.CompiledLaunch | None = None

    def call(groups: int, *arguments: Any) -> None:
        nonlocal launch
        if launch is None:
            launch = _C.CompiledLaunch(function.result(), items, list(kinds))
        launch(groups, arguments)

    return call
