"""Tensors and storages, serialization and sharing."""

from __future__ import annotations

import copy
import io
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from ..._build import NAME
from ..surfaces import Declined, backend, expect, surface


def three() -> torch.Tensor:
    return torch.arange(3, device=NAME)


def is_three(tensor: torch.Tensor, device: str = NAME) -> None:
    expect((tensor.device.type, tensor.tolist()), (device, [0, 1, 2]))


@surface("methods", f"Tensor.{NAME}, Tensor.is_{NAME}")
def tensors_move() -> None:
    moved = getattr(torch.arange(3), NAME)()
    is_three(moved)
    expect(getattr(moved, f"is_{NAME}"))


@surface("methods", f"Module.{NAME}")
def modules_move() -> None:
    moved: Any = getattr(torch.nn.Linear(1, 1), NAME)()
    expect(moved.weight.device.type, NAME)


@surface("methods", f"PackedSequence.{NAME}, PackedSequence.is_{NAME}")
def packed_sequences_move() -> None:
    moved = getattr(torch.nn.utils.rnn.pack_sequence([torch.arange(3)]), NAME)()
    expect(getattr(moved, f"is_{NAME}"))
    is_three(moved.data)


@surface("module", "FloatTensor and the like", feature="integrations")
def old_types_are_known() -> None:
    expect(backend.FloatTensor([1]).dtype, torch.float32)


@surface("methods", "torch.device as a context, torch.set_default_device")
def default_is_chosen() -> None:
    with torch.device(NAME):
        expect(torch.ones(1).device.type, NAME)


@surface("methods", "repr")
def tensors_are_printed() -> None:
    expect(f"device='{NAME}:" in repr(three()))


@surface("storage", f"UntypedStorage(device={NAME!r}), clone, byteswap")
def storages_are_made() -> None:
    make: Any = torch.UntypedStorage
    storage = make(8, device=NAME)
    storage.fill_(1)
    swapped = storage.clone()
    swapped.byteswap(torch.int32)
    expect((swapped.device.type, swapped.tolist()), (NAME, [1] * 8))


@surface("storage", f"UntypedStorage.{NAME}, is_{NAME}", feature="storage")
def storages_move() -> None:
    moved = getattr(torch.arange(3).untyped_storage(), NAME)()
    expect((getattr(moved, f"is_{NAME}"), moved.nbytes()), (True, 24))


@surface("serialization", "torch.save, torch.load")
def files_are_loaded() -> None:
    for location, device in ((None, NAME), ("cpu", "cpu"), (f"{NAME}:0", NAME)):
        file = io.BytesIO()
        torch.save(three(), file)
        file.seek(0)
        is_three(torch.load(file, map_location=location, weights_only=True), device)


@surface("serialization", "pickle, copy.deepcopy")
def tensors_are_pickled() -> None:
    is_three(pickle.loads(pickle.dumps(three())))
    is_three(copy.deepcopy(three()))


@surface("serialization", "ForkingPickler, by which torch.multiprocessing sends")
def tensors_are_sent() -> None:
    is_three(pickle.loads(ForkingPickler.dumps(three())))


@surface("sharing", "ForkingPickler, with the memory that a tensor has", feature="ipc")
def memory_is_sent() -> None:
    if not backend._C.ipc_has_memory():
        raise Declined("the device library has no export_memory: tensors are copied")
    tensor = three()
    expect(pickle.loads(ForkingPickler.dumps(tensor)).data_ptr(), tensor.data_ptr())


@surface("serialization", "__dlpack__, __dlpack_device__, torch.from_dlpack")
def tensors_are_shared() -> None:
    tensor = three()
    shared = from_dlpack(tensor)
    is_three(shared)
    expect(shared.data_ptr(), tensor.data_ptr())
