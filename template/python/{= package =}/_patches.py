"""Patches for PyTorch functions that do not support a renamed PrivateUse1 backend.

Each docstring describes the problem in PyTorch, and when to remove the patch. Each patch has a name
that disables it, see :mod:`._patching`. Other devices behave as before.
"""

from __future__ import annotations

import enum
import functools
import importlib
import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import _tensor_str
from torch.overrides import has_torch_function_unary

from . import _C
from ._build import NAME
from ._compat import release
from ._patching import is_wanted, refuse_unknown


def apply(patches_of_features: Iterable[str]) -> None:
    """Replace PyTorch's functions. Called once, after the backend is renamed.

    Raises:
        ImportError: the environment variable disables an unknown patch, see :mod:`._patching`.
    """
    refuse_unknown((*PATCHES, *patches_of_features))
    for name, patch in PATCHES.items():
        if is_wanted(name):
            patch()


def repair_dlpack_device() -> None:
    """Make ``torch.from_dlpack`` and ``Tensor.__dlpack_device__`` accept this device.

    PyTorch 2.6 to 2.15 compare the device type with the literal "privateuse1", which is never the
    type of a renamed backend, and raise "Unknown device type". Remove this when the oldest
    supported release includes the fix, pytorch#195815.
    """
    original = torch.Tensor.__dlpack_device__

    def __dlpack_device__(self: torch.Tensor) -> tuple[enum.IntEnum, int]:
        # A subclass with __torch_function__ is called first, as in the original.
        if has_torch_function_unary(self) or self.device.type != NAME:
            return original(self)
        from torch.utils.dlpack import DLDeviceType

        return DLDeviceType.kDLExtDev, self.device.index

    torch.Tensor.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]


def repair_dlpack_import() -> None:
    """Check the DLPack capsules of this device before PyTorch imports them.

    PyTorch does not check the device index, the dtype and the memory of a capsule for this device,
    and aborts the process if a stride is negative. Remove this once PyTorch queries the backend.
    """
    module: Any = torch._C
    original = module._from_dlpack

    def _from_dlpack(capsule: object) -> torch.Tensor:
        _C.check_dlpack(capsule)
        tensor: torch.Tensor = original(capsule)
        return tensor

    module._from_dlpack = _from_dlpack


def repair_loading() -> None:
    """Raise for a file whose tensors reach beyond their storages.

    A storage that PyTorch loads to the CPU cannot be resized, so a tensor that needs a larger one
    raises. A storage on a device can be resized: it grows, and the tensor reads uninitialized
    memory. Remove this once PyTorch compares the sizes.
    """
    module: Any = torch._utils
    module._rebuild_tensor = _without_growth(module._rebuild_tensor)
    module._rebuild_tensor_v3 = _without_growth(module._rebuild_tensor_v3)


def _without_growth(rebuild: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(rebuild)
    def rebuild_and_compare(storage: Any, *arguments: Any, **keywords: Any) -> torch.Tensor:
        untyped = storage._untyped_storage
        held = untyped.nbytes()
        tensor = rebuild(storage, *arguments, **keywords)
        if untyped.device.type == NAME and untyped.nbytes() != held:
            raise RuntimeError(
                f"the file is damaged: a tensor of sizes {tuple(tensor.shape)} and strides "
                f"{tensor.stride()} needs {untyped.nbytes()} bytes, and its storage has {held}"
            )
        return tensor

    return rebuild_and_compare


def repair_byteswap() -> None:
    """Make ``UntypedStorage.byteswap`` swap the bytes of a storage of this device on the CPU.

    PyTorch swaps the bytes in place on the host for all devices. The process crashes if the host
    cannot address the memory. Remove this once PyTorch checks the device.
    """
    storage_class: Any = torch.UntypedStorage
    original = storage_class.byteswap

    def byteswap(self: Any, dtype: torch.dtype) -> None:
        if self.device.type != NAME:
            original(self, dtype)
            return
        swapped = self.cpu()
        original(swapped, dtype)
        self.copy_(swapped)

    storage_class.byteswap = byteswap


def repair_printing() -> None:
    """Format the elements of this device's tensors on the CPU.

    PyTorch computes the column width in float64 on the tensor's device, except for a fixed list of
    devices without float64. A backend may have been generated without float64. Remove this once
    PyTorch queries the dtypes of the device. Only the edges of a summarized tensor are copied.
    """
    module: Any = _tensor_str
    original, options = module._tensor_str, module.PRINT_OPTS
    lock = threading.RLock()  # prints of other threads must not save the changed threshold

    def edges(tensor: torch.Tensor, dim: int = 0) -> torch.Tensor:
        """Return the printed elements and one more, so that PyTorch prints an ellipsis."""
        if dim == tensor.dim():
            return tensor.cpu()
        edge, size = options.edgeitems, tensor.size(dim)
        if size <= 2 * edge + 1:
            return edges(tensor, dim + 1)
        ends = tensor.narrow(dim, 0, edge + 1), tensor.narrow(dim, size - edge, edge)
        return torch.cat([edges(end, dim + 1) for end in ends], dim)

    def _tensor_str_on_cpu(self: torch.Tensor, indent: int) -> Any:
        if self.device.type != NAME:
            return original(self, indent)
        with lock:
            threshold = options.threshold
            if self.numel() <= threshold or self.layout != torch.strided or self.is_quantized:
                return original(self.cpu(), indent)
            options.threshold = 0  # so that PyTorch summarizes the edges
            try:
                return original(edges(self), indent)
            finally:
                options.threshold = threshold

    module._tensor_str = _tensor_str_on_cpu


def repair_autocast_availability() -> None:
    """Make ``torch.amp.is_autocast_available`` return False for a backend without autocast.

    PyTorch returns True for every PrivateUse1 backend. ``torch.utils.checkpoint`` then creates an
    autocast context, which raises, so checkpointing fails. Remove this once PyTorch queries the
    device module.
    """
    original = torch.amp.is_autocast_available

    def is_autocast_available(device_type: str) -> bool:
        if device_type != NAME:
            return original(device_type)
        try:
            torch.autocast(NAME, enabled=False)
        except AssertionError:
            return False
        return True

    torch.amp.is_autocast_available = is_autocast_available


def repair_fork_rng() -> None:
    """Make the default ``device_type`` of ``torch.random.fork_rng`` the current accelerator.

    PyTorch 2.10 to 2.12 use "cuda", and start the CUDA driver for the device indices of another
    backend. 2.12 does so in every pipeline of ``torch.distributed``. Remove this when 2.13 is the
    oldest supported release.
    """
    if release() >= (2, 13):
        return
    module: Any = torch.random
    original = module.fork_rng

    @functools.wraps(original)
    def fork_rng(
        devices: Any = None,
        enabled: bool = True,
        _caller: str = "fork_rng",
        _devices_kw: str = "devices",
        device_type: str | None = None,
    ) -> Any:
        accelerator = torch.accelerator.current_accelerator()
        if device_type is None and accelerator is not None:
            device_type = accelerator.type
        return original(devices, enabled, _caller, _devices_kw, device_type or "cuda")

    module.fork_rng = fork_rng


def repair_traced_convolutions() -> None:
    """Make tracing use the memory format that convolutions of this backend return.

    PyTorch traces convolutions of every PrivateUse1 backend with contiguous results, so compiled
    code reads elements at wrong offsets. The format is that of the input or the weight, as in
    csrc/aten/convolution.cpp. Remove this once PyTorch queries the backend.
    """
    module: Any = torch._C
    original = module._conv_determine_backend_memory_format

    def _conv_determine_backend_memory_format(
        input: torch.Tensor, weight: torch.Tensor, backend: Any
    ) -> torch.memory_format:
        if input.device.type != NAME or backend != module._ConvBackend.Overrideable:
            format: torch.memory_format = original(input, weight, backend)
            return format
        from torch._prims_common import suggest_memory_format

        found = suggest_memory_format(input)
        return suggest_memory_format(weight) if found is torch.contiguous_format else found

    module._conv_determine_backend_memory_format = _conv_determine_backend_memory_format


def explain_missing_inductor() -> None:
    """Make ``torch.compile`` raise a clear error if Inductor generates no code for this device.

    Inductor raises a KeyError without a message. This does nothing if Inductor supports the device.
    """
    wrapper: Any = torch._TorchCompileInductorWrapper
    original = wrapper.__call__

    def __call__(self: Any, model_: Any, inputs_: Any, **options: Any) -> Any:
        inductor: Any = importlib.import_module("torch._inductor.compile_fx")
        if inductor.get_wrapper_codegen_for_device(NAME) is None and uses_device(model_, inputs_):
            raise NotImplementedError(
                f"inductor generates no code for {NAME}: "
                'use torch.compile(..., backend="aot_eager") until it does'
            )
        return original(self, model_, inputs_, **options)

    wrapper.__call__ = __call__


def uses_device(model: Any, inputs: Iterable[object]) -> bool:
    """Return whether a traced graph has a tensor of this device as an input or creates one."""

    def is_here(value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return any(is_here(item) for item in value)
        return isinstance(value, torch.Tensor) and value.device.type == NAME

    known = (node.meta.get("example_value", node.meta.get("val")) for node in model.graph.nodes)
    return any(is_here(value) for value in (*inputs, *model.parameters(), *known))


PATCHES: dict[str, Callable[[], None]] = {
    "dlpack_device": repair_dlpack_device,
    "dlpack_import": repair_dlpack_import,
    "loading": repair_loading,
    "byteswap": repair_byteswap,
    "printing": repair_printing,
    "autocast_availability": repair_autocast_availability,
    "fork_rng": repair_fork_rng,
    "traced_convolutions": repair_traced_convolutions,
    "missing_inductor": explain_missing_inductor,
}
"""The patches by the names that disable them."""
