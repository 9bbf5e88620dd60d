# mypy: disable-error-code="import-not-found,import-untyped,misc"
"""The worker and the model runner: vLLM's own without their CUDA-specific parts."""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from vllm.platforms import current_platform
from vllm.utils.mem_utils import MemorySnapshot, format_gib
from vllm.utils.torch_utils import set_random_seed
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm.v1.worker.gpu_worker import Worker, init_worker_distributed_environment
from vllm.v1.worker.utils import request_memory
from vllm.v1.worker.worker_base import CompilationTimes

from .._build import NAME
from . import layers

__all__ = ["DeviceModelRunner", "DeviceWorker"]


class DeviceModelRunner(GPUModelRunner):
    """vLLM's model runner with PyTorch operators in place of Triton kernels."""

    def _init_kv_zero_meta(self) -> None:
        """Do nothing, as :meth:`_zero_block_ids` finds the caches by their layers."""

    def _zero_block_ids(self, block_ids: list[int]) -> None:
        """Zero blocks of the caches of all layers, once for each cache."""
        if not block_ids:
            return
        seen: set[int] = set()
        which = torch.tensor(block_ids).to(self.device)
        for layer in self.compilation_config.static_forward_context.values():
            cache = getattr(layer, "kv_cache", None)
            if isinstance(cache, torch.Tensor) and cache.numel() and cache.data_ptr() not in seen:
                seen.add(cache.data_ptr())
                # In every dtype of a cache, zero consists of zero bytes.
                cache.view(torch.uint8).index_fill_(0, which, 0)


class DeviceWorker(Worker):
    """vLLM's worker on one device."""

    def init_device(self) -> None:
        """Select the device of this process, join the process groups, and measure free memory."""
        index = self.local_rank
        if index >= torch.accelerator.device_count():
            raise ValueError(
                f"worker {index} has no device: there are {torch.accelerator.device_count()}"
            )
        layers.register()
        self.device = torch.device(NAME, index)
        torch.accelerator.set_device_index(index)
        current_platform.check_if_supports_dtype(self.model_config.dtype)
        init_worker_distributed_environment(
            self.vllm_config,
            self.rank,
            self.distributed_init_method,
            self.local_rank,
            current_platform.dist_backend,
        )
        set_random_seed(self.model_config.seed)
        gc.collect()
        torch.accelerator.empty_cache()
        self.init_snapshot = MemorySnapshot(device=self.device)
        self.requested_memory = request_memory(self.init_snapshot, self.cache_config)
        self._init_workspace_and_model_runner()

    def load_model(self, *, load_dummy_weights: bool = False) -> None:
        """Load the weights.

        Raises:
            ValueError: the files are too large for the memory; the message has the sizes.
        """
        files = Path(self.model_config.model)
        sizes = [each.stat().st_size for each in files.glob("*.safetensors")]
        share = sum(sizes) // self.parallel_config.world_size
        if share > self.requested_memory:
            raise ValueError(
                f"the weights of {files.name} take {format_gib(share)} GiB of each device, more "
                f"than the {format_gib(self.requested_memory)} GiB that vLLM may use of {NAME}: "
                "use more devices (--tensor-parallel-size) or a quantized checkpoint"
            )
        super().load_model(load_dummy_weights=load_dummy_weights)

    def compile_or_warm_up_model(self) -> Any:
        """Seed the generators as vLLM does, and compile nothing.

        The device compiles its kernels, or finds them in a cache, at their first launch. vLLM warms
        up CUDA kernels here.
        """
        set_random_seed(self.model_config.seed, self.parallel_config.data_parallel_index)
        return CompilationTimes(language_model=0.0, encoder=0.0)

    def _make_model_runner(self) -> Any:
        return DeviceModelRunner(self.vllm_config, self.device)

    def _maybe_get_memory_pool_context(self, tag: str) -> AbstractContextManager[None]:
        # vLLM's sleep mode needs its CUDA allocator.
        return nullcontext()
