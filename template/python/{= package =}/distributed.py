"""``torch.distributed`` on this device: the backend ``<name>ccl``.

PyTorch chooses it by itself for tensors of this device, in ``init_process_group()`` without a
backend or with ``device_id=``; ``"cpu:gloo,<name>:<name>ccl"`` names it. What is compiled is loaded
when the first group is made.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch.distributed as dist

from ._build import NAME

__all__ = ["collective_record"]

BACKEND = f"{NAME}ccl"


def collective_record() -> list[dict[str, Any]]:
    """Return the last 1000 operations that this process asked of its groups, oldest first.

    Each has ``group``, ``rank``, ``size``, ``number`` (equal for what belongs together on all
    ranks), ``name``, ``what`` (dtype, elements, the other rank), ``state`` (enqueued, running, done
    or failed) and ``enqueued_ms``, milliseconds since 1970.
    """
    module = sys.modules.get(f"{__package__}._distributed")
    return [] if module is None else json.loads(module.dump())


def setup() -> None:
    """Tell PyTorch of the backend. Nothing is loaded until a group is made."""
    if dist.is_available():
        # A list: of a string, some releases take every letter for a device.
        dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=[NAME])
        _repair_default()


def _repair_default() -> None:
    """Let a group of ``"cpu:gloo,<name>:<name>ccl"`` have a default backend.

    PyTorch looks the first backend that was registered up by its name in capital letters, among
    names in small ones, finds none, and says so at the end of every group. This can go once it
    compares the names as they are.
    """
    plugins: dict[str, Any] = dist.Backend._plugins
    others = dict(plugins)
    plugins.clear()
    plugins.update({BACKEND: others[BACKEND.upper()], **others})


def _create(options: Any, backend_options: Any) -> Any:
    from torch._C._distributed_c10d import PrefixStore

    from . import _distributed

    if not dist.is_gloo_available():
        raise RuntimeError(
            f"{BACKEND} carries data with Gloo, which this PyTorch was built without: install one of "
            "PyTorch's own wheels"
        )
    host = dist.ProcessGroupGloo(
        PrefixStore("host/", options.store),
        options.group_rank,
        options.group_size,
        timeout=options.timeout,
    )
    host.options.global_ranks_in_group = options.global_ranks_in_group
    host.options.group_name = options.group_id
    return _distributed.create(
        store=options.store,
        rank=options.group_rank,
        size=options.group_size,
        host=host,
        name=options.group_id,
        timeout=options.timeout,
    )
