# mypy: disable-error-code="import-not-found,import-untyped,misc"
"""The platform: what vLLM asks of a device before there is a worker, and who does its work."""

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
    """Return whether the device calculates with ``dtype``."""
    return bool(backend.dtype_support(dtype) == "supported")


class DevicePlatform(Platform):
    """This device, as vLLM sees it."""

    _enum = PlatformEnum.OOT
    device_name = NAME
    device_type = NAME
    dispatch_key = "PrivateUse1"
    # vLLM makes groups for one process, too. Gloo has them where the backend has no collectives.
    dist_backend = f"{NAME}ccl" if HAS_COLLECTIVES else "gloo"
    # Small functions that vLLM compiles by themselves: a compiler costs more than it brings.
    simple_compile_backend = "eager"
    # vLLM reads kernels of other devices where a method is not in this list.
    supported_quantization: ClassVar[list[str]] = ["compressed-tensors", "fp8"]

    @property
    def supported_dtypes(self) -> list[torch.dtype]:
        """Return what the device calculates with; the first replaces one that it does not."""
        choice = (torch.bfloat16, torch.float16, torch.float32)
        return [dtype for dtype in choice if computes(dtype)]

    @classmethod
    def check_if_supports_dtype(cls, dtype: torch.dtype) -> None:
        """Refuse a dtype that the device only holds, or has not.

        Raises:
            ValueError: naming those that it calculates with.
        """
        if not computes(dtype):
            known = ", ".join(str(each).removeprefix("torch.") for each in cls().supported_dtypes)
            raise ValueError(
                f"{NAME} does not calculate with {dtype}: give vLLM --dtype, one of {known}"
            )

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability | None:
        """Return None: numbers here would choose kernels of CUDA."""
        return None

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        """Return the name that the device has for people."""
        return str(backend.get_device_name(device_id))

    @classmethod
    def get_device_uuid(cls, device_id: int = 0) -> str:
        """Return a name that no other device of this machine has."""
        return f"{NAME}-{device_id}"

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Return the bytes that the device has, free or not."""
        return int(torch.accelerator.get_memory_info(device_id)[1])

    @classmethod
    def get_current_memory_usage(cls, device: Any = None) -> float:
        """Return the most bytes that tensors had since the figures were last reset."""
        return float(torch.accelerator.max_memory_allocated(device))

    @classmethod
    def num_compute_units(cls, device_id: int = 0) -> int:
        """Return how many parts of the device work at once."""
        return int(backend.get_device_properties(device_id).compute_units)

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """Make ``device`` the current one of this thread."""
        backend.set_device(device)

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        """Seed the generators of every device."""
        backend.manual_seed_all(seed)

    @classmethod
    def is_pin_memory_available(cls) -> bool:
        """Return True: the backend pins memory of the host on every system."""
        return True

    @classmethod
    def import_kernels(cls) -> None:
        """Import none: those that vLLM has compiled are for other devices."""

    @classmethod
    def register_triton_kernel_overrides(cls) -> None:
        """Put plain operators where vLLM's own classes launch Triton's kernels."""
        from vllm.triton_utils.dispatcher import register_kernels

        from .kernels import OVERRIDES

        register_kernels(OVERRIDES)

    @classmethod
    def get_attn_backend_cls(
        cls, selected_backend: Any, attn_selector_config: Any, num_heads: int | None = None
    ) -> str:
        """Return the attention over paged caches, or say why the device has none for this model.

        Raises:
            ValueError: another one was asked for by name, or the model needs what it has not.
        """
        from .attention import PagedAttention

        if selected_backend is not None and selected_backend.name != "CUSTOM":
            raise ValueError(
                f"{NAME} has one attention backend, its own, not {selected_backend.name}"
            )
        reasons = PagedAttention.validate_configuration(
            device_capability=DeviceCapability(0, 0), **attn_selector_config._asdict()
        )
        if reasons:
            raise ValueError(f"attention of {NAME} declines this model: {'; '.join(reasons)}")
        return f"{PARENT}.attention.PagedAttention"

    @classmethod
    def get_punica_wrapper(cls) -> str:
        """Return LoRA's products in plain PyTorch."""
        return "vllm.lora.punica_wrapper.punica_cpu.PunicaWrapperCPU"

    @classmethod
    def support_hybrid_kv_cache(cls) -> bool:
        """Return True: layers with windows and without may have caches of different lengths."""
        return True

    @classmethod
    def check_runner_kv_caches_multi_layer(cls) -> None:
        """Allow several attentions in a layer: caches are found by the layer's name."""

    @classmethod
    def check_and_update_config(cls, vllm_config: Any) -> None:
        """Choose the worker, and what vLLM cannot know to be absent here.

        Raises:
            ValueError: the configuration needs what this backend has not.
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
                f"vLLM was told to use {processes} devices, but {NAME} has {backend.device_count()}"
            )
        # Copies that overlap the next step are made on streams of CUDA.
        vllm_config.scheduler_config.async_scheduling = False
        compilation = vllm_config.compilation_config
        compilation.mode = CompilationMode.NONE
        compilation.cudagraph_mode = CUDAGraphMode.NONE
        compilation.cudagraph_capture_sizes = []
        if vllm_config.speculative_config is not None:
            raise ValueError(
                f"vLLM's speculative decoding launches Triton's kernels: not on {NAME}"
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
        """Refuse a group beside PyTorch's own, which only elastic expert parallelism makes.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(f"groups without torch.distributed's registry: not on {NAME}")
