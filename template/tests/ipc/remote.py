"""Functions that the tests call in other processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from backend import DEVICE, backend

kept: list[Any] = []
"""Objects that this process keeps."""


def forget() -> None:
    kept.clear()
    backend.ipc_collect()


def keep(*values: Any) -> None:
    kept.extend(values)


def add(tensor: torch.Tensor, number: float) -> None:
    tensor.add_(number)
    backend.synchronize()


def keep_and_add(tensor: torch.Tensor, number: float) -> None:
    keep(tensor)
    add(tensor, number)


def add_to_kept(number: float) -> None:
    add(kept[0], number)


def values(tensor: torch.Tensor) -> Any:
    return tensor.tolist()


def values_of_kept() -> Any:
    return [tensor.tolist() for tensor in kept]


def kept_values() -> list[Any]:
    return kept


def make(*values: float) -> torch.Tensor:
    return torch.tensor(values, device=DEVICE)


def make_and_keep(*values: float) -> torch.Tensor:
    keep(make(*values))
    result: torch.Tensor = kept[-1]
    return result


def give_back(*values: Any) -> Any:
    return values


def storages(*tensors: torch.Tensor) -> list[int]:
    return [tensor.untyped_storage().data_ptr() for tensor in tensors]


def describe(tensor: torch.Tensor) -> tuple[str, bool, bool, bool, Any]:
    return (
        type(tensor).__name__,
        tensor.requires_grad,
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.detach().resolve_conj().resolve_neg().tolist(),
    )


def resize(tensor: torch.Tensor) -> None:
    tensor.resize_(1_000_000)


def descriptors() -> list[str]:
    """Return the shared memory files that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
    return sorted(name for name in found if "memfd" in name or "shm" in name)


def allocated() -> int:
    backend.ipc_collect()
    return int(backend.memory_allocated(DEVICE))


def wait_and_read(event: torch.Event, tensor: torch.Tensor) -> Any:
    stream = backend.Stream()
    event.wait(stream)
    with backend.stream(stream):
        return tensor.tolist()


def wait_for_kept(number: int) -> None:
    kept[number].synchronize()


def record() -> torch.Event:
    event = torch.Event(DEVICE)
    event.record()
    keep(event)
    return event
