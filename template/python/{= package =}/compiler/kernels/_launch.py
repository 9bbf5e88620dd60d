"""Functions that Inductor's code calls: kernels are defined once, and launched by name."""

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
"""Compilers run beside each other, and beside what Inductor does."""


def kernel_cache() -> Path:
    """Return the folder of what the host has compiled, beside Inductor's own cache."""
    return cache_folder(Path(cache_dir(), f"{NAME}-kernels"))


def define_kernel(
    name: str, device: int, kinds: Sequence[str], items: int, source: str
) -> Callable[..., None]:
    """Return what enqueues a kernel on the current stream of its device.

    It takes the number of groups, then the arguments. It is compiled when it is called first, or
    before.

    Args:
        name: of the function in the source.
        device: what it runs on.
        kinds: of its parameters: ``"read"`` and ``"written"`` for tensors, ``"long"``, ``"float"``
            and ``"double"`` for numbers.
        items: how many work items a group has.
        source: in the language that the device takes.
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
