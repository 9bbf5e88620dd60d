"""Storages on the device, with CPU storages as the reference."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import needs, needs_two_devices, supported

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
BYTES = [1, 2, 3, 250, 0, 7, 8, 9]


def on_cpu(values: list[int] = BYTES) -> Any:
    return torch.UntypedStorage(values)


def move(storage: Any, *arguments: Any, **keywords: Any) -> Any:
    """Call the method that is named after the device."""
    return getattr(storage, DEVICE)(*arguments, **keywords)


def is_on_device(storage: Any) -> bool:
    return bool(getattr(storage, f"is_{DEVICE}"))


def typed(dtype: torch.dtype = torch.float32) -> Any:
    return torch.TypedStorage([1, 2, 3], dtype=dtype)


# --- Untyped storages ---


def test_the_method_copies_to_the_device() -> None:
    source = on_cpu()
    storage = move(source)
    assert isinstance(storage, torch.UntypedStorage)
    assert storage.device == torch.device(DEVICE, 0)
    assert storage.tolist() == BYTES
    storage[0] = 77
    assert source[0] == BYTES[0]


def test_the_property_is_true_only_on_the_device() -> None:
    assert is_on_device(on_cpu()) is False
    assert is_on_device(move(on_cpu())) is True
    assert is_on_device(move(on_cpu()).cpu()) is False


def test_the_method_returns_a_storage_that_is_already_on_the_device() -> None:
    storage = move(on_cpu())
    assert move(storage) is storage
    assert move(storage, 0) is storage
    assert move(storage, torch.device(DEVICE, 0)) is storage


@needs_two_devices
@pytest.mark.parametrize("device", [1, f"{DEVICE}:1", torch.device(DEVICE, 1)], ids=str)
def test_the_method_accepts_a_device(device: Any) -> None:
    storage = move(on_cpu(), device)
    assert storage.device == torch.device(DEVICE, 1)
    assert storage.get_device() == 1
    assert storage.tolist() == BYTES


@needs_two_devices
def test_the_method_copies_between_devices() -> None:
    storage = move(on_cpu(), 0)
    other = move(storage, 1)
    assert other is not storage
    assert (other.get_device(), other.tolist()) == (1, BYTES)
    assert (storage.get_device(), storage.tolist()) == (0, BYTES)


def test_the_method_refuses_another_device_type() -> None:
    with pytest.raises(RuntimeError, match="Invalid device"):
        move(on_cpu(), torch.device("cpu"))


@pytest.mark.parametrize("pinned", [False, True])
def test_the_method_accepts_non_blocking(pinned: bool) -> None:
    source = on_cpu()
    if pinned:
        # By a tensor, because up to PyTorch 2.12 storages are pinned for CUDA by default.
        source = torch.tensor(BYTES, dtype=torch.uint8).pin_memory().untyped_storage()
    storage = move(source, non_blocking=True)
    backend.synchronize()
    assert storage.tolist() == BYTES


def test_the_method_refuses_sparse_storages() -> None:
    class Sparse(torch.UntypedStorage):
        is_sparse = True

    with pytest.raises(RuntimeError, match=f"Can not support a sparse storage move to {DEVICE}"):
        move(Sparse(4))


def test_an_empty_storage_can_be_moved() -> None:
    storage = move(torch.UntypedStorage(0))
    assert storage.nbytes() == 0
    assert is_on_device(storage)
    assert storage.cpu().tolist() == []


def test_to_and_cpu_move_a_storage() -> None:
    storage = on_cpu().to(device=torch.device(DEVICE, 0))
    assert is_on_device(storage)
    assert storage.to(device=torch.device(DEVICE, 0)) is storage
    assert storage.cpu().tolist() == BYTES
    assert storage.to(device="cpu", non_blocking=True).tolist() == BYTES


@needs_two_devices
@pytest.mark.parametrize("size", [0, 16])
def test_a_new_storage_is_on_the_given_device(size: int) -> None:
    storage = torch.UntypedStorage(size, device=f"{DEVICE}:1")
    assert (storage.device, storage.nbytes()) == (torch.device(DEVICE, 1), size)
    assert storage.resizable()


def test_elements_can_be_read_and_written() -> None:
    ours, theirs = move(on_cpu()), on_cpu()
    for storage in (ours, theirs):
        storage[1] = 200
        storage[3:5] = 11
    assert ours.tolist() == theirs.tolist()
    assert ours[2:4].tolist() == theirs[2:4].tolist()
    assert (len(ours), ours.size(), ours.nbytes()) == (8, 8, 8)
    assert list(ours) == list(theirs)


def test_elements_past_the_end_are_refused_as_on_the_cpu() -> None:
    for storage in (move(on_cpu()), on_cpu()):
        with pytest.raises(IndexError, match="out of range"):
            storage[8]
        with pytest.raises(RuntimeError, match="out of bounds"):
            storage[8] = 1


def test_fill_and_copy_change_the_bytes() -> None:
    storage = torch.UntypedStorage(8, device=DEVICE)
    storage.fill_(5)
    assert storage.tolist() == [5] * 8
    assert storage.copy_(on_cpu()) is storage
    assert storage.tolist() == BYTES
    assert on_cpu([0] * 8).copy_(storage).tolist() == BYTES


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: x.clone()])
def test_duplicates_are_independent(duplicate: Any) -> None:
    storage = move(on_cpu())
    other = duplicate(storage)
    assert (other.device, other.tolist()) == (storage.device, BYTES)
    other.fill_(0)
    assert storage.tolist() == BYTES


def test_share_memory_does_nothing_and_share_fd_is_refused() -> None:
    storage = move(on_cpu())
    assert storage.share_memory_() is storage
    assert storage.tolist() == BYTES
    with pytest.raises(RuntimeError, match="only available on CPU"):
        storage._share_fd_cpu_()


@needs(torch.float32)
def test_resizing_keeps_the_bytes_and_the_tensor_sees_the_new_storage() -> None:
    tensor = torch.arange(4.0, device=DEVICE)
    storage = tensor.untyped_storage()
    storage.resize_(32)
    assert storage.nbytes() == 32
    assert tensor.tolist() == [0, 1, 2, 3]
    storage.resize_(8)
    assert storage.nbytes() == 8
    assert tensor[:2].tolist() == [0, 1]
    assert storage.tolist() == torch.arange(2.0).untyped_storage().tolist()


@needs(torch.float32)
@needs_two_devices
def test_resizing_stays_on_the_storages_device() -> None:
    tensor = torch.arange(3.0, device=f"{DEVICE}:1")
    tensor.untyped_storage().resize_(64)
    assert tensor.untyped_storage().device == torch.device(DEVICE, 1)
    assert tensor.tolist() == [0, 1, 2]


# --- Typed storages ---


@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_typed_storages_move_and_keep_their_dtype(dtype: torch.dtype) -> None:
    source = torch.TypedStorage([1, 0, 1], dtype=dtype)
    storage = move(source)
    assert is_on_device(storage)
    assert not is_on_device(source)
    assert storage.dtype is dtype
    assert storage.tolist() == source.tolist()
    assert storage.cpu().tolist() == source.tolist()


@needs(torch.float32)
def test_a_typed_storage_already_on_the_device_is_not_copied() -> None:
    storage = move(typed())
    assert move(storage).data_ptr() == storage.data_ptr()
    if backend.device_count() > 1:
        assert move(storage, 1).device == torch.device(DEVICE, 1)


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint32], ids=str)
def test_typed_storages_of_an_absent_dtype_are_refused(dtype: torch.dtype) -> None:
    storage = torch.TypedStorage(4, dtype=dtype)
    with pytest.raises(RuntimeError) as error:
        move(storage)
    assert str(error.value) == (
        f"Cannot create {DEVICE} storage as {dtype} dtype is not supported by this backend"
    )
    assert is_on_device(move(storage.untyped()))
