"""``torch.distributed`` on this device: the backend ``<name>ccl``.

``init_process_group()`` without a backend or with ``device_id=`` selects it for tensors of this
device. ``"cpu:gloo,<name>:<name>ccl"`` selects it by name. The compiled part is loaded when the
first group is created.
"""

from __future__ import annotations

import json
import sys
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist

from ._build import NAME
from ._patching import is_wanted

__all__ = ["collective_record"]

PATCHES = ("data_parallel", "default_backend")

BACKEND = f"{NAME}ccl"


def collective_record() -> list[dict[str, Any]]:
    """Return the last 1000 operations that this process started on its groups, oldest first.

    Each has ``group``, ``rank``, ``size``, ``number`` (equal on all ranks for the same operation),
    ``name``, ``what`` (dtype, elements, the other rank), ``state`` (enqueued, running, done or
    failed) and ``enqueued_ms``, milliseconds since 1970.
    """
    module = sys.modules.get(f"{__package__}._distributed")
    return [] if module is None else json.loads(module.dump())


def setup() -> None:
    """Register the backend with PyTorch. Nothing else is loaded until a group is created."""
    if dist.is_available():
        # A list: some releases read each letter of a string as a device.
        dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=[NAME])
        if is_wanted("default_backend"):
            set_default_backend()
    if is_wanted("data_parallel"):
        explain_data_parallel()


def explain_data_parallel() -> None:
    """Make ``torch.nn.DataParallel`` and ``torch.nn.parallel.scatter`` raise a clear error.

    They call functions that only CUDA builds of PyTorch have, and raise an AttributeError.
    """

    def refuse(*_: object, **__: object) -> None:
        raise NotImplementedError(
            "torch.nn.DataParallel needs a PyTorch that was built for CUDA: "
            f"use torch.nn.parallel.DistributedDataParallel on {NAME}"
        )

    for name in ("_scatter", "_gather", "_broadcast", "_broadcast_coalesced"):
        if not hasattr(torch._C, name):
            setattr(torch._C, name, refuse)


def set_default_backend() -> None:
    """Make this backend the default backend of the groups that have it.

    PyTorch's default is NCCL if it is available. Otherwise, for groups created without a backend,
    it is Gloo, which the group does not have; or PyTorch looks up the first registered backend by
    its upper-case name among lower-case names. DistributedDataParallel needs a default. Remove this
    once PyTorch's default is a backend that the group has.
    """
    from torch.distributed import distributed_c10d

    make = distributed_c10d._new_process_group_helper

    @wraps(make)
    def make_with_default(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        group, device = made[0], torch.device(NAME)
        # PyTorch returns an int on ranks outside the group.
        has_device = isinstance(group, dist.ProcessGroup) and device in group._device_types
        if has_device and group._get_backend(device).name() == BACKEND:
            group._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
        return made

    distributed_c10d._new_process_group_helper = make_with_default


def _create(options: Any, backend_options: Any) -> Any:
    from . import _distributed

    return _distributed.create(options)
