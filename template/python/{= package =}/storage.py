"""Storages on this device, and the private layout that a storage's bytes may have.

PyTorch generates ``UntypedStorage.<name>()``, ``TypedStorage.<name>()`` and ``is_<name>`` from
``GENERATED_METHODS``.

A layout describes the arrangement of a storage's bytes. New storages have the plain layout. Saving,
loading, ``copy.deepcopy`` and the methods of a storage (``clone``, ``copy_``, a copy to another
device of this backend) preserve the layout. Operators on tensors read the layouts that
``to_format`` creates, which the device supports. They raise for layouts of ``set_storage_layout``
that only the vendor's own operators support.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from . import _C
from ._build import NAME
from ._patching import is_wanted

__all__ = ["StorageLayout", "pack_weights", "set_storage_layout", "storage_layout", "to_format"]


def _unsupported_dtypes() -> list[torch.dtype]:
    known = dict.fromkeys(item for item in vars(torch).values() if isinstance(item, torch.dtype))
    storage_only = _C.device_dtypes()
    return [dtype for dtype in known if str(dtype).removeprefix("torch.") not in storage_only]


PATCHES = ("storage_layouts", "dlpack_export")

GENERATED_METHODS: dict[str, object] = {
    "for_storage": True,
    "unsupported_dtype": _unsupported_dtypes(),
}

HasStorage: TypeAlias = "torch.Tensor | torch.UntypedStorage | torch.TypedStorage"


@dataclass(frozen=True)
class StorageLayout:
    """The arrangement of a storage's bytes: the vendor's number of a format and its parameters.

    ``StorageLayout()`` is the plain layout, in which sizes and strides give the element offsets.
    """

    format: int = 0
    numbers: tuple[int, ...] = ()


def storage_layout(source: HasStorage) -> StorageLayout:
    """Return the layout of a storage, or of the storage that a tensor views.

    Raises:
        ValueError: ``source`` is on a device of another type.
    """
    format_, numbers = _C.storage_layout(_untyped(source)._cdata)
    return StorageLayout(format_, tuple(numbers))


def set_storage_layout(target: HasStorage, layout: StorageLayout) -> None:
    """Set the layout of a storage. Does not change its bytes.

    Raises:
        RuntimeError: this backend did not create the storage, so the storage cannot have a layout.
        ValueError: ``target`` is on a device of another type.
    """
    _C.set_storage_layout(_untyped(target)._cdata, layout.format, list(layout.numbers))


def to_format(tensor: torch.Tensor, format: int, *numbers: int) -> torch.Tensor:
    """Return a new tensor with the same values whose bytes are in a layout of the device.

    ``format`` is the device's number of the format, and ``numbers`` are its parameters. Format 0 is
    the plain layout.

    Raises:
        RuntimeError: ``tensor`` requires a gradient, which ``to_format`` does not support.
        ValueError: the device has no such layout for this tensor, or is of another type.
    """
    if tensor.requires_grad and torch.is_grad_enabled():
        raise RuntimeError(
            "to_format does not support autograd: detach() the argument, or call it under "
            "torch.no_grad()"
        )
    _untyped(tensor)
    result: torch.Tensor = _C.to_format(tensor, format, list(numbers))
    return result


def pack_weights(module: torch.nn.Module) -> int:
    """Convert the weights of linear layers and convolutions to the layouts the device prefers.

    In place: each weight remains the same parameter. Returns the number of converted weights, which
    is 0 if the device prefers the plain layout. Weights that are shared with other types of modules
    do not change. ``state_dict`` returns plain tensors, and ``load_state_dict`` converts the loaded
    weights. Gradients do not change. An optimizer cannot change a converted weight.
    """
    owners: dict[int, list[tuple[torch.nn.Module, str]]] = {}
    for owner in module.modules():
        for name, parameter in owner._parameters.items():
            if parameter is not None and _is_dense(parameter):
                key = parameter.untyped_storage()._cdata
                owners.setdefault(key, []).append((owner, name))
    return sum(_pack_shared(shared) for shared in owners.values())


def _is_dense(parameter: torch.nn.Parameter) -> bool:
    # Subclasses have other rules, and uninitialized parameters have no storage.
    return (
        type(parameter) is torch.nn.Parameter
        and parameter.layout is torch.strided
        and parameter.device.type == NAME == parameter.untyped_storage().device.type
    )


def _pack_shared(owners: list[tuple[torch.nn.Module, str]]) -> bool:
    """Pack a shared weight if all owners are linear layers or convolutions and use it as weight."""
    (first, first_name), *_ = owners
    weight = first._parameters[first_name]
    for owner, name in owners:
        is_weight = name == "weight" and owner._parameters[name] is weight
        if not is_weight or not isinstance(owner, _WEIGHT_OWNERS):
            return False
    if not _pack(first):
        return False
    hooked: Any
    for hooked, _ in owners:
        if _pack_loaded not in hooked._load_state_dict_post_hooks.values():
            hooked.register_state_dict_post_hook(_unpack_in_state_dict)
            hooked.register_load_state_dict_post_hook(_pack_loaded)
    return True


_WEIGHT_OWNERS = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)


def _pack(owner: torch.nn.Module) -> bool:
    weight = owner.weight
    assert isinstance(weight, torch.nn.Parameter)
    # A weight in a larger storage is a part of another tensor.
    is_own = weight.is_contiguous() and weight.untyped_storage().nbytes() == weight.nbytes
    if not is_own or _has_private_layout(weight):
        return False
    is_convolution = isinstance(owner, torch.nn.modules.conv._ConvNd)
    format_, numbers = _C.preferred_layout(weight.detach(), is_convolution)
    if format_ == 0:
        return False
    weight.data = to_format(weight.data, format_, *numbers)
    return True


def _unpack_in_state_dict(
    module: torch.nn.Module, state: dict[str, Any], prefix: str, _: object
) -> None:
    value = state.get(prefix + "weight")
    is_kept = isinstance(value, torch.nn.Parameter)  # with keep_vars=True
    if isinstance(value, torch.Tensor) and not is_kept and _has_private_layout(value):
        state[prefix + "weight"] = to_format(value, 0)


def _pack_loaded(module: torch.nn.Module, _: object) -> None:
    """Pack a weight that load_state_dict(assign=True) has replaced."""
    if isinstance(module.weight, torch.nn.Parameter) and _is_dense(module.weight):
        _pack(module)


def setup() -> None:
    """Patch PyTorch's functions for storages with a layout; called once, at import."""
    if is_wanted("storage_layouts"):
        _repair_copies_of_bytes()
    if is_wanted("dlpack_export"):
        _repair_dlpack_export()


def _repair_copies_of_bytes() -> None:
    """Make PyTorch's copies of a storage's bytes copy its layout too.

    ``UntypedStorage.copy_``, which clone, deepcopy and moves between devices use, copies through
    byte tensors, which do not have the layouts of the storages. ``Parameter.__deepcopy__`` clones
    the tensor with an operator, while ``Tensor.__deepcopy__`` copies the storage. The other methods
    that read and write bytes go through tensors too, and must accept any layout.
    """
    untyped_storage: Any = torch.UntypedStorage
    untyped_storage.copy_ = _copy_with_layout(untyped_storage.copy_)
    for name in ("__getitem__", "__setitem__", "fill_"):
        setattr(untyped_storage, name, _with_raw_bytes(getattr(untyped_storage, name)))
    parameter: Any = torch.nn.Parameter
    parameter.__deepcopy__ = _deepcopy_with_layout(parameter.__deepcopy__)


def _repair_dlpack_export() -> None:
    """Raise for the export of a private layout through DLPack, whose consumers use the strides.

    ``to_dlpack`` reads no memory, so it calls no operator that could raise.
    """
    bindings: Any = torch._C
    for name in ("_to_dlpack", "_to_dlpack_versioned"):
        setattr(bindings, name, _require_plain_layout(getattr(bindings, name)))
    modules: tuple[Any, ...] = (torch, torch.utils.dlpack)
    for module in modules:
        module.to_dlpack = bindings._to_dlpack


def _require_plain_layout(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def to_dlpack(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
        if isinstance(tensor, torch.Tensor) and _has_private_layout(tensor):
            raise BufferError(
                f"DLPack: a tensor's storage, on {tensor.device}, has a private layout: its "
                "elements are not at the offsets of its sizes and strides. Convert it to the plain "
                "layout first, with an operator that supports this layout"
            )
        return original(tensor, *arguments, **keywords)

    return to_dlpack


def _copy_with_layout(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def copy_(self: Any, src: Any, non_blocking: bool | None = None) -> Any:
        with _C.RawStorageAccess():
            result = original(self, src, non_blocking)
        if self.device.type == NAME and src.device.type == NAME:
            _C.copy_storage_layout(self._cdata, src._cdata)
        return result

    return copy_


def _with_raw_bytes(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *arguments: Any) -> Any:
        with _C.RawStorageAccess():
            return original(self, *arguments)

    return method


def _deepcopy_with_layout(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) in memo or not _has_private_layout(self):
            return original(self, memo)
        result = type(self)(copy.deepcopy(self.data, memo), self.requires_grad)
        memo[id(self)] = result
        return result

    return __deepcopy__


def _has_private_layout(tensor: torch.Tensor) -> bool:
    # A fake tensor can have this device, but its storage is on another one.
    if tensor.device.type != NAME or tensor.untyped_storage().device.type != NAME:
        return False
    return storage_layout(tensor) != StorageLayout()


def _untyped(source: HasStorage) -> Any:
    if isinstance(source, torch.Tensor):
        storage: Any = source.untyped_storage()
    else:
        # Most attributes of TypedStorage raise a deprecation warning.
        storage = getattr(source, "_untyped_storage", source)
    if storage.device.type != NAME:
        raise ValueError(f"expected a tensor or storage on {NAME}, got one on {storage.device}")
    return storage
