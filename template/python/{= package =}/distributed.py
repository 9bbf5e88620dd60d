"""``torch.distributed`` on this device: the backend ``<name>ccl``.

PyTorch chooses it by itself for tensors of this device, in ``init_process_group()`` without a
backend or with ``device_id=``; ``"cpu:gloo,<name>:<name>ccl"`` names it. What is compiled is loaded
when the first group is made.
"""

from __future__ import annotations

import json
import sys
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist

from ._build import NAME

__all__ = ["collective_record"]

BACKEND = f"{NAME}ccl"


def collective_record() -> list[dict[str, Any]]:
    """Return the last 1000 operations that this process started on its groups, oldest first.

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
        _give_groups_a_default()


def _give_groups_a_default() -> None:
    """Let the default backend of a group that has this one be this one.

    PyTorch chooses NCCL if it is there. For others it takes Gloo, in groups without a name, though
    they have none; or it looks for the first backend that was registered, by its name in capital
    letters among names in small ones. DistributedDataParallel cannot do without a default. This can
    go once PyTorch chooses a backend that the group has.
    """
    from torch.distributed import distributed_c10d

    make = distributed_c10d._new_process_group_helper

    @wraps(make)
    def make_with_default(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        group, device = made[0], torch.device(NAME)
        # Processes outside the group get a number.
        has_device = isinstance(group, dist.ProcessGroup) and device in group._device_types
        if has_device and group._get_backend(device).name() == BACKEND:
            group._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
        return made

    distributed_c10d._new_process_group_helper = make_with_default


def _create(options: Any, backend_options: Any) -> Any:
    from . import _distributed

    return _distributed.create(options)
