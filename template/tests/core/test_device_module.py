"""The device module: the current device, names of devices, functions that PyTorch calls."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import computed_dtypes, is_simulator, needs, needs_two_devices, run_python

LAST = backend.device_count() - 1


def test_torch_accelerator_calls_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    assert torch.accelerator.is_available()
    monkeypatch.setattr(backend, "is_available", lambda: False)
    assert not torch.accelerator.is_available()


def test_torch_accelerator_calls_device_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert torch.accelerator.device_count() == backend.device_count() >= 1
    monkeypatch.setattr(backend, "device_count", lambda: 7)
    assert torch.accelerator.device_count() == 7


@needs_two_devices
@needs(torch.float32)
@pytest.mark.parametrize("device", [1, f"{DEVICE}:1", torch.device(DEVICE, 1)])
def test_set_device_sets_the_device_of_new_tensors(device: Any) -> None:
    backend.set_device(device)
    assert backend.current_device() == 1
    assert torch.accelerator.current_device_index() == 1
    assert torch.ones(1, device=DEVICE).device == torch.device(DEVICE, 1)
    assert getattr(torch.ones(1), DEVICE)().device.index == 1


@needs_two_devices
def test_torch_accelerator_sets_the_same_current_device() -> None:
    torch.accelerator.set_device_index(1)
    assert backend.current_device() == 1
    with torch.accelerator.device_index(0):
        assert backend.current_device() == 0
    assert backend.current_device() == 1


@pytest.mark.parametrize("device", [None, -1, -2])
def test_device_of_none_or_a_negative_index_changes_nothing(device: Any) -> None:
    backend.set_device(LAST)
    backend.set_device(device)
    with backend.device(device):
        assert backend.current_device() == LAST
    assert backend.current_device() == LAST


@needs_two_devices
def test_device_restores_after_an_exception() -> None:
    with pytest.raises(KeyError), backend.device(1):
        raise KeyError
    assert backend.current_device() == 0


@needs_two_devices
@needs(torch.float32)
def test_device_of_follows_a_tensor_and_ignores_other_devices() -> None:
    with backend.device_of(torch.ones(1, device=f"{DEVICE}:1")):
        assert backend.current_device() == 1
        with backend.device_of(torch.ones(1)):
            assert backend.current_device() == 1
    assert backend.current_device() == 0


@needs_two_devices
def test_current_device_is_per_thread() -> None:
    backend.set_device(1)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(backend.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]


def test_a_device_of_another_type_is_refused() -> None:
    for use in (backend.set_device, backend.device, backend.synchronize, backend.memory_allocated):
        for other in ("cpu", torch.device("cpu"), True):
            with pytest.raises(ValueError, match=f"expected a {DEVICE} device"):
                use(other)


@pytest.mark.parametrize("index", [backend.device_count(), 127, 128, 254])
def test_an_index_without_a_device_is_refused(index: int) -> None:
    """Indices from 128 are negative in PyTorch, and -1 is the current device."""
    for use in (
        lambda: torch.ones(1, device=f"{DEVICE}:{index}"),
        lambda: torch.ones(1).to(torch.device(DEVICE, index)),
    ):
        with pytest.raises(RuntimeError, match=f"invalid device {DEVICE}:"):
            use()


def test_synchronize_accepts_every_form_of_a_device() -> None:
    for device in (
        None,
        0,
        DEVICE,
        f"{DEVICE}:{LAST}",
        torch.device(DEVICE),
        torch.device(DEVICE, LAST),
    ):
        backend.synchronize(device)
    torch.accelerator.synchronize()


def test_capability_is_a_version_or_the_dtypes() -> None:
    properties = backend.get_device_properties()
    assert backend.get_device_capability() == (properties.major, properties.minor) >= (0, 0)
    assert torch.accelerator.get_device_capability() == {"supported_dtypes": set(computed_dtypes())}


def test_the_dtype_of_dtype_support_is_checked() -> None:
    with pytest.raises(TypeError, match=r"expected a torch\.dtype, got 'float32'"):
        backend.dtype_support("float32")


@pytest.mark.skipif(not is_simulator(), reason="only the simulator can have no devices")
def test_dtypes_without_a_device_are_those_of_the_build() -> None:
    code = f"""
        import torch
        backend = torch.{DEVICE}
        assert {{backend.dtype_support(dtype) for dtype in backend.supported_dtypes()}} == {{"supported"}}
        assert not backend.is_bf16_supported()
        try:
            backend.dtype_support(torch.float32, "cuda")
        except ValueError as error:
            assert "expected a {DEVICE} device" in str(error), error
        else:
            raise AssertionError("another device is accepted")
    """
    run_python(code, {f"{ENV_PREFIX}_SIMULATOR_DEVICES": "0"})


def test_peer_access_is_known_for_every_pair() -> None:
    devices = range(backend.device_count())
    for one in devices:
        answers = [backend.can_device_access_peer(one, other) for other in devices]
        assert answers[one] is False
        if is_simulator(one):
            assert answers == [other != one for other in devices]


def test_autocast_is_available_if_it_can_be_enabled() -> None:
    assert torch.amp.is_autocast_available(DEVICE) is hasattr(backend, "get_amp_supported_dtype")
    if torch.amp.is_autocast_available(DEVICE):
        with torch.autocast(DEVICE):
            # It warns and stays off if there is no dtype of 16 bits to cast to.
            assert torch.is_autocast_enabled(DEVICE) is bool(backend.get_amp_supported_dtype())
    else:
        with pytest.raises(AssertionError):
            torch.autocast(DEVICE)
    assert torch.amp.is_autocast_available("cpu")


@needs(torch.float32)
def test_an_integer_is_an_index_of_this_device() -> None:
    assert torch.device(LAST) == torch.device(DEVICE, LAST)
    assert torch.ones(1, device=LAST).device == torch.device(DEVICE, LAST)


@needs(torch.float32)
def test_fake_tensors_have_the_current_device() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    backend.set_device(LAST)
    with FakeTensorMode():
        fake = torch.empty(2, 3, device=DEVICE)
        assert fake.device == torch.device(DEVICE, LAST)
        assert (fake + 1).mT.shape == (3, 2)
