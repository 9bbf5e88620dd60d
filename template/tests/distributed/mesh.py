"""Meshes of processes."""

from __future__ import annotations

import math

import torch
from backend import DEVICE
from torch.distributed.device_mesh import DeviceMesh


def make_mesh(*sizes: int, names: tuple[str, ...] | None = None) -> DeviceMesh:
    """Return the mesh of ``init_device_mesh``, which refuses device names with an underscore."""
    return DeviceMesh(DEVICE, torch.arange(math.prod(sizes)).view(sizes), mesh_dim_names=names)
