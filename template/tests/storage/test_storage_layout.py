"""The private layout of a storage: where it is stored, and operations that preserve it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import needs, needs_two_devices, sample, save_and_load

pytestmark = needs(torch.float32)

PLAIN = backend.StorageLayout()
TILED = backend.StorageLayout(format=29, numbers=(16, -1, 1 << 40))


def tiled(*shape: int) -> torch.Tensor:
    tensor = sample(*(shape or (4, 4))).to(DEVICE)
    backend.set_storage_layout(tensor, TILED)
    return tensor


def bytes_of(tensor: torch.Tensor) -> list[int]:
    return list(tensor.untyped_storage().tolist())


def test_new_tensors_and_storages_have_the_plain_layout() -> None:
    assert backend.storage_layout(torch.ones(3, device=DEVICE)) == PLAIN
    assert backend.storage_layout(torch.UntypedStorage(8, device=DEVICE)) == PLAIN
    assert backend.storage_layout(torch.empty(0, device=DEVICE)) == PLAIN


def test_a_layout_can_be_set_changed_and_removed() -> None:
    tensor = tiled()
    before = bytes_of(tensor)
    assert backend.storage_layout(tensor) == TILED
    other = backend.StorageLayout(format=3)
    backend.set_storage_layout(tensor, other)
    assert backend.storage_layout(tensor) == other
    backend.set_storage_layout(tensor, PLAIN)
    assert backend.storage_layout(tensor) == PLAIN
    assert bytes_of(tensor) == before


def test_tensor_untyped_and_typed_storage_have_the_same_layout() -> None:
    tensor = tiled()
    assert backend.storage_layout(tensor.untyped_storage()) == TILED
    assert backend.storage_layout(tensor._typed_storage()) == TILED
    backend.set_storage_layout(tensor.untyped_storage(), PLAIN)
    assert backend.storage_layout(tensor) == PLAIN


def test_views_and_aliases_have_the_layout_of_their_base() -> None:
    tensor = tiled()
    parameter = torch.nn.Parameter(tensor)
    for alias in (tensor[1:], tensor.t(), tensor.detach(), parameter, parameter.data):
        assert backend.storage_layout(alias) == TILED


def test_like_functions_return_the_plain_layout() -> None:
    tensor = tiled()
    for result in (torch.empty_like(tensor), torch.zeros_like(tensor)):
        assert backend.storage_layout(result) == PLAIN


READS_ELEMENTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "arithmetic": lambda x: x + 1,
    "in place": lambda x: x.mul_(2),
    "of a view": lambda x: x.t()[1:] + 1,
    "out=": lambda x: torch.add(torch.ones_like(x), 1, out=x),
    "product": lambda x: x @ torch.ones_like(x),
    "layer": lambda x: torch.nn.functional.linear(torch.ones_like(x), x),
    "normalisation": lambda x: torch.nn.functional.layer_norm(torch.ones_like(x), (4,), x[0]),
    "reduction": torch.sum,
    "indexing": lambda x: x[torch.tensor([0, 1], device=DEVICE)],
    "concatenation": lambda x: torch.cat([torch.ones_like(x), x]),
    "filling": torch.zero_,
    "number": lambda x: x[0, 0].item(),
    "clone": torch.clone,
    "to the host": lambda x: x.cpu(),
    "to pinned memory": lambda x: torch.empty(4, 4, pin_memory=True).copy_(x, non_blocking=True),
    "from the host": lambda x: x.copy_(torch.ones(4, 4)),
    "on the CPU": torch.special.bessel_j0,
    "a list of tensors": lambda x: torch._foreach_add([torch.ones_like(x), x], 1),
    "printing": repr,
    "lazy copies": torch._lazy_clone,
}


@pytest.mark.parametrize("use", READS_ELEMENTS.values(), ids=READS_ELEMENTS)
def test_operators_that_read_elements_refuse_a_private_layout(
    use: Callable[[torch.Tensor], Any],
) -> None:
    tensor = tiled()
    before = bytes_of(tensor)
    with pytest.raises(RuntimeError, match=f"{DEVICE}:0, has a private layout.* Convert it"):
        use(tensor)
    assert bytes_of(tensor) == before
    backend.set_storage_layout(tensor, PLAIN)
    use(tensor)


@pytest.mark.parametrize(
    "export", [torch.Tensor.__dlpack__, torch.utils.dlpack.to_dlpack, torch.from_dlpack]
)
def test_dlpack_refuses_a_private_layout(export: Callable[[torch.Tensor], Any]) -> None:
    tensor = tiled()
    with pytest.raises(BufferError, match=f"{DEVICE}:0, has a private layout.* Convert it"):
        export(tensor)
    backend.set_storage_layout(tensor, PLAIN)
    export(tensor)


@needs_two_devices
def test_copying_a_tensor_to_another_device_refuses_a_private_layout() -> None:
    with pytest.raises(RuntimeError, match="has a private layout"):
        tiled().to(f"{DEVICE}:1")


def test_resizing_keeps_the_layout() -> None:
    tensor = tiled()
    tensor.untyped_storage().resize_(0)
    tensor.untyped_storage().resize_(64)
    assert backend.storage_layout(tensor) == TILED


def test_deepcopy_keeps_the_layout() -> None:
    tensor = tiled()
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(tensor)
    for other in (copy.deepcopy(tensor), copy.deepcopy(module).weight):
        assert isinstance(other, torch.Tensor)
        assert other.data_ptr() != tensor.data_ptr()
        assert backend.storage_layout(other) == TILED
        assert bytes_of(other) == bytes_of(tensor)


def test_copying_a_storage_keeps_the_layout() -> None:
    storage: Any = tiled().untyped_storage()
    for other in (storage.clone(), copy.copy(storage), copy.deepcopy(storage)):
        assert backend.storage_layout(other) == TILED
    target = torch.UntypedStorage(storage.nbytes(), device=DEVICE)
    assert backend.storage_layout(target.copy_(storage)) == TILED
    plain = torch.UntypedStorage(storage.nbytes(), device=DEVICE)
    assert backend.storage_layout(target.copy_(plain)) == PLAIN


@needs_two_devices
def test_copying_a_storage_to_another_device_keeps_the_layout() -> None:
    storage: Any = tiled().untyped_storage()
    for other in (getattr(storage, DEVICE)(1), storage.to(device=f"{DEVICE}:1")):
        assert other.get_device() == 1
        assert backend.storage_layout(other) == TILED


@pytest.mark.parametrize("weights_only", [False, True])
def test_save_and_load_keep_the_layout(weights_only: bool) -> None:
    tensor = tiled()
    loaded = save_and_load(tensor, weights_only=weights_only)
    assert loaded.device == tensor.device
    assert backend.storage_layout(loaded) == TILED
    assert bytes_of(loaded) == bytes_of(tensor)


@needs_two_devices
def test_loading_on_another_device_keeps_the_layout() -> None:
    loaded = save_and_load(tiled(), map_location=f"{DEVICE}:1")
    assert loaded.get_device() == 1
    assert backend.storage_layout(loaded) == TILED


@needs(torch.complex64)
def test_a_layout_is_saved_with_the_conjugate_bit() -> None:
    values = sample(3, dtype=torch.complex64)
    tensor = values.to(DEVICE)
    backend.set_storage_layout(tensor, TILED)
    loaded = save_and_load(tensor.conj())
    assert loaded.is_conj()
    assert backend.storage_layout(loaded) == TILED
    backend.set_storage_layout(loaded, PLAIN)
    assert loaded.resolve_conj().tolist() == values.conj().tolist()


def test_a_plain_tensor_has_no_layout_metadata() -> None:
    tensor = sample(3).to(DEVICE)
    assert torch._utils.get_tensor_metadata(tensor) == {}
    loaded = save_and_load(tensor)
    assert backend.storage_layout(loaded) == PLAIN


def test_loading_a_private_layout_on_the_cpu_is_refused() -> None:
    with pytest.raises(RuntimeError, match=f"in a layout that only {DEVICE} can read"):
        save_and_load(tiled(), map_location="cpu")
    assert save_and_load(sample(3).to(DEVICE), map_location="cpu").device.type == "cpu"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3:5:", "version 3, but this build"),
        ("x:5:", "damaged at 'x:5:'"),
        ("1:5:1,a", "damaged at 'a'"),
        ("1", "damaged at ''"),
    ],
)
def test_invalid_layout_metadata_is_refused(text: str, message: str) -> None:
    tensor = sample(3).to(DEVICE)
    with pytest.raises(RuntimeError, match=message):
        torch._utils.set_tensor_metadata(tensor, {f"{DEVICE}.layout.{text}": True})


def test_unrelated_metadata_is_ignored() -> None:
    tensor = sample(3).to(DEVICE)
    torch._utils.set_tensor_metadata(tensor, {"something": True, f"{DEVICE}.layout.1:5:": False})
    assert backend.storage_layout(tensor) == PLAIN


def test_cpu_tensors_have_no_layout() -> None:
    for value in (torch.ones(2), torch.ones(2).untyped_storage()):
        with pytest.raises(ValueError, match=f"expected a tensor or storage on {DEVICE}"):
            backend.storage_layout(value)
        with pytest.raises(ValueError, match=f"expected a tensor or storage on {DEVICE}"):
            backend.set_storage_layout(value, TILED)


def test_a_layout_of_external_memory_is_refused() -> None:
    source = torch.ones(3, device=DEVICE)
    imported = torch.from_dlpack(torch.utils.dlpack.to_dlpack(source))
    assert backend.storage_layout(imported) == PLAIN
    with pytest.raises(RuntimeError, match="did not make this storage"):
        backend.set_storage_layout(imported, TILED)
    backend.set_storage_layout(imported, PLAIN)
