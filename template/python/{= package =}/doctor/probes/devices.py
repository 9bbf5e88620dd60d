"""Devices, streams and events: functions of the device module, the guard and the hooks."""

from __future__ import annotations

from typing import Any

import torch

from ..._build import NAME
from ..surfaces import Declined, backend, expect, surface


@surface("module", "is_available, device_count")
def devices_are_counted() -> None:
    expect(torch.accelerator.is_available())
    expect(torch.accelerator.device_count(), backend.device_count())


@surface("module", "device, current_device, set_device")
def devices_are_chosen() -> None:
    for index in range(backend.device_count()):
        with backend.device(index):
            expect(torch.ones(1, device=NAME).device.index, index)
            expect(backend.current_device(), index)
    backend.set_device(backend.current_device())


@surface("module", "_lazy_init, is_initialized, _initialized")
def runtime_starts() -> None:
    backend._lazy_init()
    expect((backend.is_initialized(), backend._initialized), (True, True))


@surface("module", "get_device_link")
def links_are_known() -> None:
    expect(isinstance(backend.get_device_link(0, "cpu").bandwidth, int))


@surface("module", "get_device_properties, get_device_capability")
def devices_are_described() -> None:
    expect(backend.get_device_properties(0).total_memory > 0)
    major, minor = backend.get_device_capability(0)
    expect(major >= 0 and minor >= 0)


@surface("module", "synchronize")
def module_waits() -> None:
    backend.synchronize()


@surface("module", "Stream, Event, stream, current_stream, is_current_stream_capturing")
def module_has_streams() -> None:
    stream = backend.Stream()
    with backend.stream(stream):
        expect(backend.current_stream(), stream)
        expect(backend.is_current_stream_capturing(), False)
        backend.Event().record()


@surface(
    "module",
    "sparse",
    declined="PyTorch has deprecated typed sparse tensors: use torch.sparse_coo_tensor",
)
def module_has_sparse() -> None:
    _ = backend.sparse


@surface("module", "_sleep", declined="only PyTorch's own tests use it")
def module_sleeps() -> None:
    _ = backend._sleep


@surface("module", "_lazy_call", declined="without it PyTorch calls the function at once")
def module_puts_calls_off() -> None:
    _ = backend._lazy_call


@surface("module", "_utils", declined="PyTorch reads the index from the name of the device")
def module_has_utilities() -> None:
    _ = backend._utils._get_device_index


@surface("guard", "deviceCount, getDevice, setDevice, uncheckedSetDevice, exchangeDevice")
def guard_switches() -> None:
    last = backend.device_count() - 1
    before = torch.accelerator.current_device_index()
    torch.accelerator.set_device_index(last)
    expect(torch.accelerator.current_device_index(), last)
    torch.accelerator.set_device_index(before)
    expect((torch.ones(1, device=f"{NAME}:{last}") + 1).device.index, last)


@surface("guard", "getDeviceCapability")
def guard_knows_types() -> None:
    known = torch._C._accelerator_getDeviceCapability(0)["supported_dtypes"]
    computed = [dtype for dtype in known if backend.dtype_support(dtype, 0) == "supported"]
    expect(set(known), set(computed))
    expect(torch.float32 in known, backend.dtype_support(torch.float32, 0) == "supported")


@surface("guard", "synchronizeDevice")
def guard_waits() -> None:
    torch.accelerator.synchronize()


@surface("guard", "getStream, exchangeStream, getDefaultStream")
def guard_has_streams() -> None:
    before, stream = torch.accelerator.current_stream(), torch.Stream(NAME)
    torch.accelerator.set_stream(stream)
    expect(torch.accelerator.current_stream(), stream)
    torch.accelerator.set_stream(before)
    expect(torch.accelerator.current_stream(), before)


@surface("guard", "getNewStream, queryStream, synchronizeStream")
def guard_makes_streams() -> None:
    stream = torch.Stream(NAME, priority=-1)
    stream.synchronize()
    expect(stream.query())


@surface("guard", "getStreamNativeHandle")
def guard_has_native_streams() -> None:
    stream: Any = torch.Stream(NAME)
    if not hasattr(torch.Stream, "native_handle"):
        raise Declined(f"PyTorch {torch.__version__} does not query it")
    _ = stream.native_handle


@surface("guard", "record, block, queryEvent, synchronizeEvent, destroyEvent")
def guard_has_events() -> None:
    event = torch.Event(NAME)
    event.record(torch.Stream(NAME))
    event.wait(torch.Stream(NAME))
    event.synchronize()
    expect(event.query())


@surface("guard", "elapsedTime")
def guard_measures() -> None:
    if not backend.get_device_properties().event_timing:
        raise Declined("the device cannot time events")
    first, last = (torch.Event(NAME, enable_timing=True) for _ in range(2))
    first.record()
    last.record()
    last.synchronize()
    expect(first.elapsed_time(last) >= 0)


@surface("guard", "recordDataPtrOnStream, DeviceAllocator::recordStream")
def guard_keeps_memory() -> None:
    torch.ones(1, device=NAME).record_stream(torch.Stream(NAME))


@surface("hooks", "isBuilt, isAvailable, hasPrimaryContext, init")
def autograd_runs() -> None:
    leaf: Any = torch.ones(2, device=NAME, requires_grad=True)
    (leaf * leaf).sum().backward()
    expect(leaf.grad.tolist(), [2.0, 2.0])


@surface("hooks", "isPinnedPtr, getPinnedMemoryAllocator")
def memory_is_pinned() -> None:
    pinned = torch.ones(4).pin_memory()
    expect((pinned.is_pinned(), torch.ones(4).is_pinned()), (True, False))
    expect(pinned.to(NAME, non_blocking=True).cpu().tolist(), [1.0] * 4)


@surface("hooks", "resizePrivateUse1Bytes")
def storage_is_resized() -> None:
    tensor = torch.ones(4, device=NAME)
    tensor.untyped_storage().resize_(64)
    expect((tensor.untyped_storage().nbytes(), tensor.tolist()), (64, [1.0] * 4))


@surface("hooks", "getDefaultGenerator, getNewGenerator", feature="rng")
def generators_are_made() -> None:
    expect(torch.Generator(NAME).device.type, NAME)
    expect(backend.default_generators[0].device.index, 0)
