"""DLPack, both ways."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import assert_same, needs, needs_two_devices, sample, supported
from torch.utils.dlpack import DLDeviceType

LAST = torch.device(DEVICE, backend.device_count() - 1)


@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_from_dlpack_shares_memory(dtype: torch.dtype) -> None:
    tensor = sample(3, 4, dtype=dtype).to(LAST)
    imported = torch.from_dlpack(tensor.T)
    assert imported.device == LAST
    assert imported.data_ptr() == tensor.data_ptr()
    tensor.zero_()
    assert_same(imported, torch.zeros(4, 3, dtype=dtype))


@needs(torch.float32)
def test_imported_tensor_keeps_the_memory_alive() -> None:
    imported = torch.from_dlpack(torch.full((1000,), 7.0, device=DEVICE))
    torch.full((1000,), 1.0, device=DEVICE)
    assert imported.eq(7).all().item()


@needs(torch.float32)
def test_dlpack_device_names_the_extension_device_and_the_index() -> None:
    assert torch.ones(1, device=LAST).__dlpack_device__() == (DLDeviceType.kDLExtDev, LAST.index)
    assert torch.ones(1).__dlpack_device__() == (DLDeviceType.kDLCPU, 0)


@needs(torch.float32)
def test_from_dlpack_moves_between_devices() -> None:
    assert torch.from_dlpack(torch.ones(2, device=DEVICE), device="cpu").tolist() == [1, 1]
    moved = torch.from_dlpack(torch.ones(2), device=torch.device(DEVICE, LAST.index))
    assert moved.device == LAST


@needs(torch.float32)
def test_torch_function_of_a_subclass_is_called() -> None:
    seen: list[Callable[..., Any]] = []

    class Recorder(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls,
            func: Callable[..., Any],
            types: Any,
            args: tuple[Any, ...] = (),
            kwargs: dict[str, Any] | None = None,
        ) -> Any:
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    tensor = torch.ones(1, device=DEVICE).as_subclass(Recorder)
    assert tensor.__dlpack_device__()[0] == DLDeviceType.kDLExtDev
    assert torch.Tensor.__dlpack_device__ in seen


@needs(torch.float32)
def test_tensors_with_gradients_and_conjugates_are_refused() -> None:
    with pytest.raises(BufferError, match="gradient"):
        torch.from_dlpack(torch.ones(2, device=DEVICE, requires_grad=True))


# --- Producers with wrong metadata ---


class Tensor(ctypes.Structure):
    """DLTensor of dlpack.h, with its nested structs inlined."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


CODES = {"f": 2, "b": 4, "c": 5, "u": 1, "i": 0}
KEPT: list[Any] = []
"""Objects that capsules of these tests point to. The capsules have no deleters."""


def numbers(values: list[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)


def capsule(
    tensor: torch.Tensor,
    shape: list[int] | None = None,
    strides: list[int] | None = None,
    versioned: bool = False,
    dtype: torch.dtype = torch.float32,
    **fields: int,
) -> Any:
    """Return a capsule that describes ``tensor`` by the arguments."""
    shape = list(tensor.shape) if shape is None else shape
    claim = Tensor(
        data=tensor.data_ptr(),
        device_type=int(DLDeviceType.kDLExtDev),
        device_id=tensor.device.index,
        ndim=len(shape),
        code=CODES[str(dtype).removeprefix("torch.")[0]],
        bits=8 * dtype.itemsize,
        lanes=1,
        shape=numbers(shape),
        strides=None if strides is None else numbers(strides),
    )
    for name, value in fields.items():
        setattr(claim, name, value)
    managed = Versioned(1, 0, None, None, 0, claim) if versioned else claim
    KEPT.append((managed, tensor))
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = b"dltensor_versioned" if versioned else b"dltensor"
    return make(ctypes.addressof(managed), name, None)


@needs(torch.float32)
@pytest.mark.parametrize("versioned", [False, True])
def test_capsules_of_other_producers_are_imported(versioned: bool) -> None:
    tensor = torch.arange(8.0, device=LAST)
    for claim, expected in (
        (capsule(tensor, versioned=versioned), list(range(8))),
        (capsule(tensor, [2, 2], [4, 1], versioned=versioned), [[0, 1], [4, 5]]),
        (capsule(torch.empty(0, device=LAST), [0], versioned=versioned), []),
    ):
        imported = torch.from_dlpack(claim)
        assert imported.device == LAST
        assert imported.tolist() == expected


@needs(torch.float32)
@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"device_id": 99}, f"{DEVICE}:99"),
        ({"device_id": -1}, f"{DEVICE}:-1"),
        ({"device_id": 256}, f"{DEVICE}:256"),
        ({"device_id": (LAST.index or 0) + 1}, "this machine has"),
        ({"strides": [-1]}, "negative strides"),
        ({"shape": [-8]}, "negative dimension"),
        ({"ndim": -1}, "-1 dimensions"),
        ({"shape": [2**40]}, "not memory of"),
        ({"shape": [2], "strides": [2**40]}, "not memory of"),
        ({"data": 64}, "not memory of"),
    ],
)
def test_impossible_metadata_is_refused(
    claim: dict[str, Any], message: str, versioned: bool
) -> None:
    tensor = torch.arange(8.0, device=LAST)
    with pytest.raises(RuntimeError, match=message):
        torch.from_dlpack(capsule(tensor, versioned=versioned, **claim))


@needs_two_devices
@needs(torch.float32)
def test_memory_of_another_device_is_refused() -> None:
    tensor = torch.arange(8.0, device=f"{DEVICE}:1")
    with pytest.raises(RuntimeError, match=f"not memory of {DEVICE}:0"):
        torch.from_dlpack(capsule(tensor, device_id=0))


@needs(torch.float32)
def test_an_object_that_claims_another_device_is_refused() -> None:
    class Producer:
        def __dlpack_device__(self) -> tuple[int, int]:
            return int(DLDeviceType.kDLExtDev), 99

        def __dlpack__(self, **_: Any) -> Any:
            return capsule(torch.arange(8.0, device=DEVICE), device_id=99)

    with pytest.raises(RuntimeError, match=f"{DEVICE}:99"):
        torch.from_dlpack(Producer())
