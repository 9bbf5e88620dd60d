"""torch.save and torch.load: map_location, damaged files, storages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import COMPLEX, assert_same, needs, sample, save_and_load, supported

LAST = torch.device(DEVICE, backend.device_count() - 1)


@pytest.mark.parametrize("dtype", supported(COMPLEX), ids=str)
def test_conjugate_tensor_comes_back(dtype: torch.dtype) -> None:
    values = sample(3, dtype=dtype)
    assert_same(save_and_load(values.to(DEVICE).conj()), values.conj())


@needs(torch.float32)
def test_map_location_loads_onto_the_device() -> None:
    for location in (DEVICE, f"{DEVICE}:{LAST.index}", LAST):
        loaded = save_and_load(torch.arange(3.0), map_location=location)
        assert_same(loaded, torch.arange(3.0))
    assert loaded.device == LAST


@needs(torch.float32)
def test_a_file_can_be_loaded_with_mmap(tmp_path: Path) -> None:
    path = tmp_path / "tensors.pt"
    torch.save({"a": torch.arange(5.0, device=DEVICE)}, path)
    loaded = torch.load(path, mmap=True)
    assert_same(loaded["a"], torch.arange(5.0))


@needs(torch.float32)
def test_a_missing_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    location = f"{DEVICE}:{backend.device_count()}"
    with pytest.raises(RuntimeError, match=r"device_count\(\) is"):
        save_and_load(torch.ones(1), map_location=location)
    tensor = torch.ones(1, device=DEVICE)
    monkeypatch.setattr(backend, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"is_available\(\) is False"):
        save_and_load(tensor)


class Claim:
    """Saves as a tensor of other sizes and strides than the storage has."""

    def __init__(self, tensor: torch.Tensor, *place: Any) -> None:
        self.tensor, self.place = tensor, place

    def __reduce_ex__(self, protocol: Any) -> Any:
        function, arguments, *_ = self.tensor.__reduce_ex__(protocol)
        return function, (arguments[0], *self.place, *arguments[4:])


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((0, (1000,), (1,)), "the file is damaged.*4000 bytes.* 16"),
        ((0, (2, 2), (1000, 1)), "the file is damaged"),
        ((3, (2,), (1,)), "the file is damaged"),
        ((0, (4,), (-1,)), "Negative strides"),
        ((3, (1,), (-1,)), "Negative strides"),
        ((-1, (4,), (1,)), "offset"),
    ],
)
@pytest.mark.parametrize("dtype", supported(torch.float32, torch.int32, torch.uint32), ids=str)
def test_files_whose_tensors_do_not_fit_their_storages_are_refused(
    dtype: torch.dtype, place: Any, message: str
) -> None:
    values = sample(4, dtype=dtype)
    assert_same(save_and_load(Claim(values.to(DEVICE), 0, (2, 2), (2, 1))), values.view(2, 2))
    for saved, location in ((values.to(DEVICE), None), (values, DEVICE)):
        with pytest.raises(RuntimeError, match=message):
            save_and_load(Claim(saved, *place), map_location=location)


@needs(torch.float32)
def test_loaded_tensors_can_be_resized() -> None:
    loaded = save_and_load(torch.arange(4.0, device=DEVICE))
    loaded.resize_(8)
    assert loaded[:4].tolist() == [0, 1, 2, 3]
    loaded.untyped_storage().resize_(0)
    assert loaded.untyped_storage().nbytes() == 0


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.complex64], ids=str)
def test_bytes_of_a_storage_are_swapped(dtype: torch.dtype) -> None:
    """Files of machines with the opposite byte order require byte swaps."""
    storages = [torch.arange(6).to(device).untyped_storage() for device in ("cpu", DEVICE)]
    for storage in storages:
        storage.byteswap(dtype)
    assert storages[1].cpu().tolist() == storages[0].tolist()
    assert storages[1].device.type == DEVICE
