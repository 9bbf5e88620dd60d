"""Random numbers drawn on the device: seeds, states and generators.

Every device has its own generator, a Philox sequence. Random operators draw from the generator of
the tensor's device, on the device. The sequence is the same function of the seed on every device,
so devices with the same seed draw the same numbers. Drawing on a device does not change the
generators of other devices or of the CPU.

A state is a CPU tensor of 16 bytes: the seed (uint64) and the offset (int64), the position in the
sequence in 32-bit numbers. Nothing here starts the runtime or waits for a device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast, overload

import torch

from . import _C
from .devices import DeviceLike, device_index

__all__ = [
    "_get_generator",
    "default_generators",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


class _DefaultGenerators(Sequence[torch.Generator]):
    """The devices' generators by index. Not a tuple, as the import must not count the devices."""

    def __len__(self) -> int:
        return _C.device_count()

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[torch.Generator, ...]: ...
    def __getitem__(self, index: int | slice) -> torch.Generator | tuple[torch.Generator, ...]:
        indices = range(len(self))[index]
        if isinstance(indices, range):
            return tuple(_generator(i) for i in indices)
        return _generator(indices)

    def __repr__(self) -> str:
        return f"default_generators({', '.join(str(item.device) for item in self)})"


default_generators: Sequence[torch.Generator] = _DefaultGenerators()
"""The generator that each device's random operators draw from, by device index."""


def manual_seed(seed: int) -> None:
    """Seed the current device's generator. A negative seed means ``2**64 + seed``."""
    _get_generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices with one seed. ``torch.manual_seed`` calls this."""
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seed the current device's generator with a number from the operating system."""
    _get_generator().seed()


def seed_all() -> None:
    """Seed the generators of all devices with one number from the operating system."""
    generators = tuple(default_generators)
    if generators:
        manual_seed_all(generators[0].seed())


def initial_seed() -> int:
    """Return the seed of the current device's generator."""
    return _get_generator().initial_seed()


def get_rng_state(device: DeviceLike = None) -> torch.Tensor:
    """Return the state of a device's generator, a CPU tensor of 16 bytes.

    Raises:
        RuntimeError: there is no device of that index.
        ValueError: ``device`` is of another type.
    """
    return _get_generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = None) -> None:
    """Restore what :func:`get_rng_state` returned, on the same device or another one.

    Raises:
        RuntimeError: ``new_state`` is not a state, or there is no device of that index.
        TypeError: ``new_state`` is not a tensor of bytes on the CPU.
        ValueError: ``device`` is of another type.
    """
    _get_generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices' generators, by device index."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Restore what :func:`get_rng_state_all` returned.

    Raises:
        RuntimeError: there are more states than devices, or one is not a state.
    """
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def _get_generator(device: DeviceLike = None) -> torch.Generator:
    """Return the generator that a device's random operators draw from.

    PyTorch calls it when a compiled graph saves and restores random states.
    """
    return _generator(device_index(device))


def _generator(index: int) -> torch.Generator:
    return cast("torch.Generator", _C.default_generator(index))
