"""Seeds and random state for devices whose random operators draw on the CPU.

Without the feature rng, random operators draw from the CPU generator. These functions seed, save
and restore it, so that ``torch.manual_seed``, ``torch.random.fork_rng`` and checkpointing work. The
feature rng replaces all of them.
"""

from __future__ import annotations

import torch

from .devices import DeviceLike, device_index

__all__ = ["get_rng_state", "manual_seed", "manual_seed_all", "set_rng_state"]


def manual_seed(seed: int) -> None:
    """Seed the current device's random operators."""
    torch.default_generator.manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the random operators of all devices. ``torch.manual_seed`` calls this."""
    torch.default_generator.manual_seed(int(seed))


def get_rng_state(device: DeviceLike = None) -> torch.Tensor:
    """Return the state that the random operators of ``device`` draw from, a tensor of bytes."""
    device_index(device)
    return torch.default_generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = None) -> None:
    """Restore what :func:`get_rng_state` returned."""
    device_index(device)
    torch.default_generator.set_state(new_state)
