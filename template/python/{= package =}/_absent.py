"""Explains a name that ``torch.<name>`` does not have."""

from __future__ import annotations

import json
from pathlib import Path

from ._build import NAME
from ._features import FEATURES

NOT_YET = (
    "CUDAPluggableAllocator",
    "ExternalStream",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "change_current_allocator",
    "clock_rate",
    "get_stream_from_external",
    "list_gpu_processes",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
)
"""Names of ``torch.cuda`` and ``torch.xpu`` that are not supported yet."""

INSTEAD: dict[str, str] = {
    "AcceleratorError": "failures of work raise RuntimeError, and last_failure() returns them",
    "CUDAGraph": f"use torch.{NAME}.Graph",
    "CudaError": "errors of devices raise RuntimeError or torch.OutOfMemoryError",
    "DeferredCudaCallError": "calls are not delayed until the device is initialised",
    "GreenContext": "a divided device appears as several devices",
    "caching_allocator_alloc": "create a tensor of torch.uint8 and use its data_ptr()",
    "caching_allocator_delete": "delete the tensor that owns the memory",
    "check_error": "errors are raised by the call that finds them, and last_failure() returns failures of asynchronous work",
    "comm": "use broadcast, scatter and gather of torch.distributed, with several processes",
    "cudart": f"this is CUDA's library; use the functions of torch.{NAME}",
    "cudaStatus": "errors are raised, so there is no status to check",
    "current_blas_handle": f"pass torch.{NAME}.current_stream().native_handle to your kernel",
    "current_solver_handle": f"pass torch.{NAME}.current_stream().native_handle to your kernel",
    "get_arch_list": "get_device_properties() has the architecture of a device",
    "get_gencode_flags": "these flags are for CUDA's compiler; get_device_properties() has the architecture",
    "get_sync_debug_mode": f"torch.{NAME} has no such mode; fallback_stats() counts operators that ran on the CPU",
    "has_half": "use dtype_support()",
    "has_magma": "linear algebra runs on the device or the CPU; fallback_stats() counts the latter",
    "host_memory_stats": "memory_stats() has statistics of device memory only",
    "host_memory_stats_as_nested_dict": "memory_stats_as_nested_dict() has statistics of device memory only",
    "jiterator": "write an operator in C++ or Python with torch.library",
    "max_memory_cached": "use max_memory_reserved",
    "memory_cached": "use memory_reserved",
    "nccl": "use the collectives of torch.distributed",
    "nvtx": "torch.profiler.record_function marks ranges",
    "profiler": "torch.profiler.profile takes ProfilerActivity.PrivateUse1",
    "reset_accumulated_host_memory_stats": "reset_accumulated_memory_stats is for device memory",
    "reset_max_memory_allocated": "use reset_peak_memory_stats",
    "reset_max_memory_cached": "use reset_peak_memory_stats",
    "reset_peak_host_memory_stats": "reset_peak_memory_stats is for device memory",
    "set_sync_debug_mode": f"torch.{NAME} has no such mode; fallback_stats() counts operators that ran on the CPU",
    "sparse": f"PyTorch has deprecated typed sparse tensors; use torch.sparse_coo_tensor(..., device={NAME!r})",
    "tunable": "the device library chooses its kernels, and stores its choices in plans",
}
"""Names of ``torch.cuda`` that stay absent, and what to use instead."""

MODULES: dict[str, str] = {
    "compiler": "compile",
    "kernels": "compile",
    "layers": "device_layers",
    "legacy": "integrations",
    "multiprocessing": "ipc",
    "plans": "sdk_helpers",
    "random": "rng",
    "ranges": "profiler",
    "unified_memory": "memory_tools",
    "usage": "doctor",
    "utils": "extension",
}
"""Modules of features that have another name than their feature."""


def explain(module: str, name: str) -> str:
    """Return the text of the AttributeError for ``name``.

    If the name belongs to a feature that the package was generated without, the text names the
    feature and how to add it. For a name of other device modules, the text says what to use
    instead.
    """
    for feature, row in FEATURES.items():
        if (name in row.provides or MODULES.get(name, name) == feature) and not row.enabled:
            return (
                f"{NAME} was generated without {feature}, which brings {name}; add it with: "
                f"torchsmith add {feature}"
            )
    text = f"module {module!r} has no attribute {name!r}"
    if name in NOT_YET:
        return f"{text}: not supported yet"
    if name in INSTEAD:
        return f"{text}: {INSTEAD[name]}"
    if name.endswith("Storage"):
        return f"{text}: typed storages are deprecated; use torch.UntypedStorage(size, device={NAME!r})"
    return text


def fallback_hints() -> dict[str, str]:
    """Return a hint for each operator that runs on the CPU here and has a kernel in a feature."""
    operators = json.loads(Path(__file__).with_name("_operators.json").read_text("utf-8"))
    return {
        f"aten::{operator}": f"; feature {feature} has one: torchsmith add {feature}"
        for feature, names in operators.items()
        for operator in names.split()
    }


def missing_feature_hint(feature: str | None) -> str | None:
    """Return how to add the feature if this project was generated without it, else None."""
    if feature is None or FEATURES[feature].enabled:
        return None
    return f"generated without {feature}; add it with: torchsmith add {feature}"
