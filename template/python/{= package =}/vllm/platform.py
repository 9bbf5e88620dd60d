# mypy: disable-error-code="import-not-found,import-untyped,misc"
"""The platform: the device properties that vLLM queries, and the classes that it uses here."""

from __future__ import annotations

import os
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, ClassVar

import torch

from .._build import NAME
from . import _versions

_versions.check(_versions.installed())

from vllm.platforms.interface import DeviceCapability, Platform, PlatformEnum  # noqa: E402

backend: Any = torch.get_device_module(NAME)

__all__ = ["DevicePlatform"]

PARENT = __name__.rpartition(".")[0]
HAS_COLLECTIVES = find_spec(f"{PARENT.rpartition('.')[0]}.distributed") is not None


def computes(dtype: torch.dtype) -> bool:
    """Return whether the device supports ``dtype``."""
    return bool(backend.dtype_support(dtype) == "supported")


class DevicePlatform(Platform):
    """vLLM's interface to this device."""

    _enum = PlatformEnum.OOT
    device_name = NAME
    device_type = NAME
    dispatch_key = "PrivateUse1"
    # vLLM creates groups for a single process too. Gloo supports them if the backend has no
    # collectives.
    dist_backend = f"{NAME}ccl" if HAS_COLLECTIVES else "gloo"
    # For small functions that vLLM compiles separately: compilation costs more than it saves.
    simple_compile_backend = "eager"
    # vLLM imports kernels of other devices for methods that are not in this list.
    supported_quantization: ClassVar[list[str]] = ["compressed-tensors", "fp8"]

    @property
    def supported_dtypes(self) -> list[torch.dtype]:
        """Return the supported dtypes; vLLM uses the first in place of an unsupported one."""
        choice = (torch.bfloat16, torch.float16, torch.float32)
        return [dtype for dtype in choice if computes(dtype)]

    @classmethod
    def check_if_supports_dtype(cls, dtype: torch.dtype) -> None:
        """Raise for a dtype that is storage-only or unsupported.

        Raises:
            ValueError: ``dtype`` is not supported; the message lists the supported dtypes.
        """
        if not computes(dtype):
            known = ", ".join(str(each).removeprefix("torch.") for each in cls().supported_dtypes)
            raise ValueError(
                f"{NAME} does not support arithmetic in {dtype}: set --dtype to one of {known}"
            )

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability | None:
        """Return None, as a capability would select CUDA kernels."""
        return None

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        """Return the name that the device library gives the device."""
        return str(backend.get_device_name(device_id))

    @classmethod
    def get_device_uuid(cls, device_id: int = 0) -> str:
        """Return a unique name of the device on this machine."""
        return f"{NAME}-{device_id}"

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Return the total memory of the device in bytes."""
        return int(torch.accelerator.get_memory_info(device_id)[1])

    @classmethod
    def get_current_memory_usage(cls, device: Any = None) -> float:
        """Return the peak of the bytes in tensors since the last reset."""
        return float(torch.accelerator.max_memory_allocated(device))

    @classmethod
    def num_compute_units(cls, device_id: int = 0) -> int:
        """Return the number of compute units of the device."""
        return int(backend.get_device_properties(device_id).compute_units)

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """Make ``device`` the current device of this thread."""
        backend.set_device(device)

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        """Seed the generators of all devices."""
        backend.manual_seed_all(seed)

    @classmethod
    def is_pin_memory_available(cls) -> bool:
        """Return True, as the backend can pin host memory on every system."""
        return True

    @classmethod
    def import_kernels(cls) -> None:
        """Do nothing, as vLLM's compiled kernels are for other devices."""

    @classmethod
    def register_triton_kernel_overrides(cls) -> None:
        """Register PyTorch operators for the Triton kernels that vLLM's classes launch."""
        from vllm.triton_utils.dispatcher import register_kernels

        from .kernels import OVERRIDES

        register_kernels(OVERRIDES)

    @classmethod
    def get_attn_backend_cls(
        cls, selected_backend: Any, attn_selector_config: Any, num_heads: int | None = None
    ) -> str:
        """Return the class of the attention over paged caches.

        Raises:
            ValueError: the user selected another backend, or the attention does not support the
                model; the message says why.
        """
        from .attention import PagedAttention

        if selected_backend is not None and selected_backend.name != "CUSTOM":
            raise ValueError(
                f"{NAME} has only its own attention backend, not {selected_backend.name}"
            )
        reasons = PagedAttention.validate_configuration(
            device_capability=DeviceCapability(0, 0), **attn_selector_config._asdict()
        )
        if reasons:
            raise ValueError(f"attention on {NAME} cannot run this model: {'; '.join(reasons)}")
        return f"{PARENT}.attention.PagedAttention"

    @classmethod
    def get_punica_wrapper(cls) -> str:
        """Return vLLM's class that computes LoRA in plain PyTorch."""
        return "vllm.lora.punica_wrapper.punica_cpu.PunicaWrapperCPU"

    @classmethod
    def support_hybrid_kv_cache(cls) -> bool:
        """Return True, as layers with and without windows can have caches of different lengths."""
        return True

    @classmethod
    def check_runner_kv_caches_multi_layer(cls) -> None:
        """Allow several attentions in a layer, as a cache is looked up by the layer's name."""

    @classmethod
    def check_and_update_config(cls, vllm_config: Any) -> None:
        """Select the worker, and disable the options that this backend does not support.

        Raises:
            ValueError: the configuration needs an unsupported option.
        """
        from vllm.config import CompilationMode, CUDAGraphMode

        # A process that has used the device cannot be forked.
        os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
        parallel = vllm_config.parallel_config
        if parallel.worker_cls == "auto":
            parallel.worker_cls = f"{PARENT}.worker.DeviceWorker"
        parallel.disable_custom_all_reduce = True
        processes = parallel.world_size
        if processes > 1 and not HAS_COLLECTIVES:
            raise ValueError(
                f"vLLM on {processes} devices needs collectives of {NAME}: the feature "
                "`distributed` is off in this package"
            )
        if processes > backend.device_count():
            raise ValueError(
                f"vLLM is set to use {processes} devices, but {NAME} has {backend.device_count()}"
            )
        # vLLM overlaps copies with the next step on CUDA streams.
        vllm_config.scheduler_config.async_scheduling = False
        compilation = vllm_config.compilation_config
        compilation.mode = CompilationMode.NONE
        compilation.cudagraph_mode = CUDAGraphMode.NONE
        compilation.cudagraph_capture_sizes = []
        if vllm_config.speculative_config is not None:
            raise ValueError(
                f"vLLM's speculative decoding needs Triton kernels, which {NAME} does not support"
            )

    @classmethod
    def stateless_init_device_torch_dist_pg(
        cls,
        backend: str,
        prefix_store: Any,
        group_rank: int,
        group_size: int,
        timeout: timedelta,
    ) -> Any:
        """Raise NotImplementedError: stateless groups are not supported.

        Only elastic expert parallelism creates them.
        """
        raise NotImplementedError(f"{NAME} supports only groups that torch.distributed registers")
