"""Storages in files and pickles."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import needs, needs_two_devices, save_and_load

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
BYTES = [9, 8, 7, 255, 0, 1]
LAST = torch.device(DEVICE, backend.device_count() - 1)


def storage_on(device: torch.device) -> Any:
    untyped: Any = torch.UntypedStorage
    return untyped(BYTES).to(device=device)


@pytest.mark.parametrize("weights_only", [False, True])
def test_a_storage_loads_on_its_device(weights_only: bool) -> None:
    loaded = save_and_load(storage_on(LAST), weights_only=weights_only)
    assert (loaded.device, loaded.tolist()) == (LAST, BYTES)
    # PyTorch decides whether bytes are loaded as a typed storage.
    assert type(loaded) is type(save_and_load(storage_on(torch.device("cpu"))))


@needs(torch.float32)
def test_a_typed_storage_loads_with_its_dtype() -> None:
    storage = torch.arange(3.0, device=LAST).storage()
    loaded = save_and_load(storage, weights_only=False)
    assert (loaded.device, loaded.dtype, loaded.tolist()) == (LAST, torch.float32, [0, 1, 2])
    loaded = pickle.loads(pickle.dumps(storage))
    assert (loaded.device, loaded.tolist()) == (LAST, [0, 1, 2])


def test_a_storage_loads_on_the_cpu() -> None:
    for location in ("cpu", torch.device("cpu"), {str(LAST): "cpu"}, lambda storage, _: storage):
        loaded = save_and_load(storage_on(LAST), map_location=location, weights_only=False)
        assert loaded.device.type == "cpu"
        assert loaded.tolist() == BYTES


def test_a_storage_of_the_cpu_loads_on_the_device() -> None:
    for location in (DEVICE, str(LAST), LAST, {"cpu": str(LAST)}):
        loaded = save_and_load(storage_on(torch.device("cpu")), map_location=location)
        assert getattr(loaded, f"is_{DEVICE}")
        assert loaded.tolist() == BYTES


@needs_two_devices
@pytest.mark.parametrize(
    "location",
    [
        f"{DEVICE}:1",
        torch.device(DEVICE, 1),
        {f"{DEVICE}:0": f"{DEVICE}:1"},
        lambda storage, _: getattr(storage, DEVICE)(1),
    ],
    ids=["str", "device", "dict", "callable"],
)
def test_a_storage_loads_on_another_device(location: Any) -> None:
    source = storage_on(torch.device(DEVICE, 0))
    loaded = save_and_load(source, map_location=location, weights_only=False)
    assert (loaded.device, loaded.tolist()) == (torch.device(DEVICE, 1), BYTES)


def test_map_location_callable_receives_the_location_of_the_storage() -> None:
    received = []

    def location(storage: Any, tag: str) -> Any:
        received.append((storage.device.type, tag))
        return storage

    save_and_load(storage_on(LAST), map_location=location, weights_only=False)
    assert received == [("cpu", str(LAST))]
