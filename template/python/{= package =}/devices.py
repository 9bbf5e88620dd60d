"""Devices: their count, the current device, properties, links and dtypes."""

from __future__ import annotations

import functools
from typing import Final, Literal, NamedTuple, TypeAlias, cast

import torch

from . import _C
from ._build import NAME

__all__ = [
    "DeviceLink",
    "can_device_access_peer",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "dtype_support",
    "get_device_capability",
    "get_device_link",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "set_device",
    "supported_dtypes",
    "synchronize",
]

DeviceLike: TypeAlias = "int | str | torch.device | None"
"""An index, a device string, a :class:`torch.device`, or None for the current device."""


def device_index(device: DeviceLike = None) -> int:
    """Return the index of ``device``.

    None, a device without an index and a negative index mean the current device.

    Raises:
        RuntimeError: there is no device of that index.
        ValueError: ``device`` is of another type.
    """
    if isinstance(device, str):
        device = torch.device(device)
    is_negative = isinstance(device, int) and device < 0  # that of a torch.device has overflowed
    if isinstance(device, torch.device) and device.type == NAME:
        device = device.index
    if device is None or is_negative:
        return _C.current_device()
    if not isinstance(device, int) or isinstance(device, bool):
        raise ValueError(f"expected a {NAME} device or its index, got {device!r}")
    return _C.resolve_device(device)


def is_host(device: DeviceLike) -> bool:
    """Return whether ``device`` is the CPU, by name or as a device."""
    return isinstance(device, (str, torch.device)) and torch.device(device).type == "cpu"


def is_available() -> bool:
    """Return whether there is a device. Safe before a fork, as it does not start the runtime."""
    return _C.device_count() > 0


def device_count() -> int:
    """Return the number of devices. Does not start the runtime."""
    return _C.device_count()


def current_device() -> int:
    """Return the index of this thread's current device."""
    return _C.current_device()


def set_device(device: DeviceLike) -> None:
    """Make ``device`` this thread's current device.

    Raises:
        RuntimeError: there is no device of that index.
        ValueError: ``device`` is of another type.
    """
    _C.set_device(device_index(device))


class device:  # PyTorch looks up the context manager by this name.
    """Context manager that changes this thread's current device.

    None and a negative index change nothing.

    Raises:
        RuntimeError: there is no device of that index.
        ValueError: ``device`` is of another type.
    """

    def __init__(self, device: DeviceLike) -> None:
        is_negative = isinstance(device, int) and device < 0
        self.idx = -1 if device is None or is_negative else device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = _C.exchange_device(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        if self.idx >= 0:
            _C.exchange_device(self.prev_idx)


class device_of(device):  # The name that other device modules use.
    """Context manager that changes the current device to that of a tensor or storage.

    An object on a device of another type changes nothing.
    """

    def __init__(self, obj: torch.Tensor | torch.UntypedStorage | torch.TypedStorage) -> None:
        super().__init__(obj.device if obj.device.type == NAME else None)


def synchronize(device: DeviceLike = None) -> None:
    """Wait until all streams of ``device`` are idle.

    Raises:
        RuntimeError: work on the device has failed, and this thread has not raised the failure yet.
        ValueError: ``device`` is of another type.
    """
    _C.synchronize(device_index(device))


def get_device_properties(device: DeviceLike = None) -> _C.DeviceProperties:
    """Return the name, the memory in bytes and the capabilities of ``device``."""
    return _C.device_properties(device_index(device))


def get_device_name(device: DeviceLike = None) -> str:
    """Return the name that the device library gives ``device``."""
    return get_device_properties(device).name


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """Return the version of the device's architecture, as ``torch.cuda.get_device_capability`` does.

    It is ``(0, 0)`` if the device library does not report a version. In contrast,
    ``torch.accelerator.get_device_capability`` returns the supported dtypes, see
    :func:`dtype_support`.
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Return whether kernels on ``device`` can address the memory of ``peer_device``."""
    return _C.can_access_peer(device_index(device), device_index(peer_device))


class DeviceLink(NamedTuple):
    """The connection of a device with another one, or with the host."""

    kind: Literal["unknown", "pci", "fabric", "on_card", "shared"]
    """``"fabric"`` is the vendor's link between cards, ``"on_card"`` connects partitions of a card,
    and ``"shared"`` means that the two have the same memory."""
    bandwidth: int
    """Bytes per second in each direction; 0 if unknown."""


def get_device_link(device: DeviceLike = None, other: DeviceLike = "cpu") -> DeviceLink:
    """Return the fastest link between ``device`` and another one, or the host for ``"cpu"``."""
    kind, bandwidth = _C.link_between(
        device_index(device), None if is_host(other) else device_index(other)
    )
    return DeviceLink(_LINK_KINDS[kind], bandwidth)


_LINK_KINDS: Final = ("unknown", "pci", "fabric", "on_card", "shared")


def supported_dtypes() -> tuple[torch.dtype, ...]:
    """Return the dtypes that this backend was generated with.

    A device may support fewer dtypes, and tensors can have storage-only dtypes, see
    :func:`dtype_support`. Does not start the runtime.
    """
    return tuple(cast("torch.dtype", getattr(torch, name)) for name in _C.supported_dtypes())


DTypeSupport: TypeAlias = Literal["supported", "storage-only", "unsupported"]


def dtype_support(dtype: torch.dtype, device: DeviceLike = None) -> DTypeSupport:
    """Return the support of ``device`` for ``dtype``.

    The value is "supported", "storage-only" or "unsupported".

    Kernels compute with a "supported" dtype. Tensors of a "storage-only" dtype can be created,
    moved, indexed, converted, printed and saved. Arithmetic on them runs on the CPU, which counts
    as a fallback. Tensors of an "unsupported" dtype cannot be created.

    Operators for narrow formats, such as scaled matrix products, can support float8 and packed
    4-bit dtypes that are otherwise storage-only.
    """
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"expected a torch.dtype, got {dtype!r}")
    # Works without a device, with the dtypes that the backend was generated with.
    index = device_index(device) if is_available() or device is not None else 0
    name = str(dtype).removeprefix("torch.")
    if name in _computed(index):
        return "supported"
    return "storage-only" if name in _C.device_dtypes() else "unsupported"


@functools.cache
def _computed(index: int) -> tuple[str, ...]:
    return tuple(_C.computed_dtypes(index))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the current device supports ``torch.bfloat16``.

    Args:
        including_emulation: ignored, for compatibility with ``torch.cuda``.
    """
    return is_available() and dtype_support(torch.bfloat16) == "supported"


def is_tf32_supported() -> bool:
    """Return False. Use ``torch.set_float32_matmul_precision`` to allow lower precision."""
    return False


def is_initialized() -> bool:
    """Return whether this process has started the runtime."""
    return _C.is_initialized()


def init() -> None:
    """Start the runtime now instead of at the first use of a device.

    Raises:
        RuntimeError: this process was forked after the runtime had started, or there is no device.
    """
    _C.init()


def _is_in_bad_fork() -> bool:
    """Return whether this process was forked after the runtime had started.

    PyTorch calls this before it seeds the devices.
    """
    return _C.is_in_bad_fork()


def _lazy_init() -> None:
    """Start the runtime once; PyTorch calls this before its first use of a device from Python.

    C++ code also starts the runtime at its first use of a device.

    Raises:
        RuntimeError: this process was forked after the runtime had started, or there is no device.
    """
    _C.init()
