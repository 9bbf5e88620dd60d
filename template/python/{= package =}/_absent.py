"""Explains a name that ``torch.<name>`` does not have."""

from __future__ import annotations

from ._build import NAME
from ._features import FEATURES

LATER: dict[str, tuple[str, ...]] = {
    "other allocators": (
        "CUDAPluggableAllocator",
        "caching_allocator_disabled",
        "caching_allocator_enable",
        "change_current_allocator",
    ),
    "streams of other libraries": ("ExternalStream", "get_stream_from_external"),
    "health of devices": (
        "clock_rate",
        "list_gpu_processes",
        "memory_usage",
        "power_draw",
        "temperature",
        "utilization",
    ),
}
"""Names of ``torch.cuda`` and ``torch.xpu`` by what a later release brings them with."""

INSTEAD: dict[str, str] = {
    "AcceleratorError": "failures of work are RuntimeError, and last_failure() reads them",
    "CUDAGraph": f"its name is torch.{NAME}.Graph",
    "caching_allocator_alloc": "make a tensor of torch.uint8 and take its data_ptr()",
    "caching_allocator_delete": "free the tensor that holds the memory",
    "check_error": "errors are raised where they are found, and last_failure() reads those of work",
    "comm": "torch.distributed has broadcast, scatter and gather, of several processes",
    "cudart": f"it is CUDA's library; what {NAME} has of it are functions of torch.{NAME}",
    "get_arch_list": "get_device_properties() has the architecture of a device",
    "get_sync_debug_mode": f"torch.{NAME} has no such mode; fallback_stats() counts what ran on the CPU",
    "has_half": "ask dtype_support()",
    "host_memory_stats": "ask memory_stats(), which is of device memory",
    "max_memory_cached": "its name is max_memory_reserved",
    "memory_cached": "its name is memory_reserved",
    "nccl": "torch.distributed has the collectives",
    "nvtx": "torch.profiler.record_function marks ranges",
    "profiler": "torch.profiler.profile takes ProfilerActivity.PrivateUse1",
    "reset_max_memory_allocated": "reset_peak_memory_stats does it",
    "reset_max_memory_cached": "reset_peak_memory_stats does it",
    "set_sync_debug_mode": f"torch.{NAME} has no such mode; fallback_stats() counts what ran on the CPU",
    "sparse": f"PyTorch gives typed sparse tensors up; use torch.sparse_coo_tensor(..., device={NAME!r})",
}
"""Names of ``torch.cuda`` that stay absent, and what serves."""


def explain(module: str, name: str) -> str:
    """Return the text of the AttributeError for ``name``.

    For a name that belongs to a feature which was left out when the package was generated, the
    text says which feature that is and how to add it; for one that other device modules have, what
    brings it or what serves in its place.
    """
    for feature, row in FEATURES.items():
        if name in row.provides and not row.enabled:
            return (
                f"{NAME} was generated without {feature}, which brings {name}; add it with: "
                f"{command_to_add(feature)}"
            )
    text = f"module {module!r} has no attribute {name!r}"
    for feature, names in LATER.items():
        if name in names:
            return f"{text}: it comes with {feature}, in a later release of the template"
    if name in INSTEAD:
        return f"{text}: {INSTEAD[name]}"
    if name.endswith("Storage"):
        return f"{text}: PyTorch gives typed storages up; use torch.UntypedStorage(size, device={NAME!r})"
    return text


def absence(feature: str | None) -> str | None:
    """Return how to add a feature that this project was generated without, else None."""
    if feature is None or FEATURES[feature].enabled:
        return None
    return f"generated without {feature}; add it with: {command_to_add(feature)}"


def command_to_add(feature: str) -> str:
    """Return the command that adds ``feature`` and keeps the features that are there."""
    wanted = [name for name, row in FEATURES.items() if row.enabled or name == feature]
    return (
        "copier update --vcs-ref=:current: --data preset=custom "
        f"--data 'features=[{', '.join(wanted)}]'"
    )
