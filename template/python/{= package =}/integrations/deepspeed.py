"""DeepSpeed on this device: ``deepspeed.get_accelerator()`` returns it without configuration.

DeepSpeed has a fixed list of accelerators, selects the CPU if it finds none of them, and accepts
another from ``set_accelerator()``. It selects one during its import, so the package sets this one
as soon as the function exists. If ``DS_ACCELERATOR`` names another device, DeepSpeed selects it.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

import torch
from deepspeed.accelerator import real_accelerator
from deepspeed.accelerator.abstract_accelerator import DeepSpeedAccelerator

from .._absent import missing_feature_hint
from .._build import ENV_PREFIX, NAME
from . import _deepspeed_operators

__all__ = ["DeviceAccelerator", "install"]

backend: Any = torch.get_device_module(NAME)


def install() -> None:
    """Make this device DeepSpeed's accelerator, unless the environment names another one.

    If DeepSpeed has already selected an accelerator, its modules use that one, and it is not
    changed.
    """
    wanted = os.environ.get("DS_ACCELERATOR")
    is_wanted = wanted == NAME if wanted else backend.is_available()
    if is_wanted and real_accelerator.ds_accelerator is None:
        real_accelerator.set_accelerator(DeviceAccelerator())


class DeviceAccelerator(DeepSpeedAccelerator):
    """The accelerator interface of DeepSpeed."""

    def __init__(self) -> None:
        super().__init__()
        self._name = NAME
        self._communication_backend_name = f"{NAME}ccl"
        # Without the feature, Inductor generates no code for this device.
        self._compile_backend = "aot_eager" if missing_feature_hint("compile") else "inductor"
        self._ranges = threading.local()

    # Execution: asynchronous with the host.

    def is_synchronized_device(self) -> bool:
        return False

    def use_host_timers(self) -> bool:
        return False

    def resolves_data_dependency(self) -> bool:
        return False

    def handles_memory_backpressure(self) -> bool:
        return False

    # Devices

    def device_name(self, device_index: int | None = None) -> str:
        return NAME if device_index is None else f"{NAME}:{device_index}"

    def device(self, device_index: int | None = None) -> Any:
        return backend.device(self.current_device() if device_index is None else device_index)

    def set_device(self, device_index: int) -> None:
        backend.set_device(device_index)

    def current_device(self) -> int:
        return int(backend.current_device())

    def current_device_name(self) -> str:
        return f"{NAME}:{backend.current_device()}"

    def device_count(self) -> int:
        return int(backend.device_count())

    def synchronize(self, device_index: int | None = None) -> None:
        backend.synchronize(device_index)

    def is_available(self) -> bool:
        return bool(backend.is_available())

    # Random numbers: without the feature rng, the CPU generator draws them.

    def random(self) -> Any:
        return torch.random

    def set_rng_state(self, new_state: torch.Tensor, device_index: int | None = None) -> None:
        backend.set_rng_state(new_state, device_index)

    def get_rng_state(self, device_index: int | None = None) -> torch.Tensor:
        state: torch.Tensor = backend.get_rng_state(device_index)
        return state

    def manual_seed(self, seed: int) -> None:
        backend.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        backend.manual_seed_all(seed)

    def initial_seed(self) -> int:
        return int(torch.initial_seed() if missing_feature_hint("rng") else backend.initial_seed())

    def default_generator(self, device_index: int) -> torch.Generator:
        if missing_feature_hint("rng"):
            return torch.default_generator
        generator: torch.Generator = backend.default_generators[device_index]
        return generator

    # Streams

    @property
    def Stream(self) -> Any:
        return backend.Stream

    @property
    def Event(self) -> Any:
        return backend.Event

    def stream(self, stream: Any) -> Any:
        return backend.stream(stream)

    def current_stream(self, device_index: int | None = None) -> Any:
        return backend.current_stream(device_index)

    def default_stream(self, device_index: int | None = None) -> Any:
        return backend.default_stream(device_index)

    # Memory

    def empty_cache(self) -> None:
        backend.empty_cache()

    def memory_allocated(self, device_index: int | None = None) -> int:
        return int(backend.memory_allocated(device_index))

    def max_memory_allocated(self, device_index: int | None = None) -> int:
        return int(backend.max_memory_allocated(device_index))

    def reset_max_memory_allocated(self, device_index: int | None = None) -> None:
        backend.reset_peak_memory_stats(device_index)

    def memory_cached(self, device_index: int | None = None) -> int:
        return self.memory_reserved(device_index)

    def max_memory_cached(self, device_index: int | None = None) -> int:
        return self.max_memory_reserved(device_index)

    def reset_max_memory_cached(self, device_index: int | None = None) -> None:
        backend.reset_peak_memory_stats(device_index)

    def memory_stats(self, device_index: int | None = None) -> dict[str, Any]:
        return dict(backend.memory_stats(device_index))

    def reset_peak_memory_stats(self, device_index: int | None = None) -> None:
        backend.reset_peak_memory_stats(device_index)

    def memory_reserved(self, device_index: int | None = None) -> int:
        return int(backend.memory_reserved(device_index))

    def max_memory_reserved(self, device_index: int | None = None) -> int:
        return int(backend.max_memory_reserved(device_index))

    def total_memory(self, device_index: int | None = None) -> int:
        return int(backend.get_device_properties(device_index).total_memory)

    def available_memory(self, device_index: int | None = None) -> int:
        return int(backend.mem_get_info(device_index)[0])

    # Types

    def is_bf16_supported(self) -> bool:
        return _computes(torch.bfloat16)

    def is_fp16_supported(self) -> bool:
        return _computes(torch.float16)

    def is_fp64_supported(self) -> bool:
        return _computes(torch.float64)

    def supported_dtypes(self) -> list[torch.dtype]:
        trained = (torch.float32, torch.float16, torch.bfloat16)
        return [dtype for dtype in trained if _computes(dtype)]

    @property
    def BFloat16Tensor(self) -> Callable[..., torch.Tensor]:
        return _maker(torch.bfloat16)

    @property
    def ByteTensor(self) -> Callable[..., torch.Tensor]:
        return _maker(torch.uint8)

    @property
    def DoubleTensor(self) -> Callable[..., torch.Tensor]:
        return _maker(torch.float64)

    @property
    def FloatTensor(self) -> Callable[..., torch.Tensor]:
        return _maker(torch.float32)

    @property
    def HalfTensor(self) -> Callable[..., torch.Tensor]:
        return _maker(torch.float16)

    @property
    def IntTensor(self) -> Callable[..., torch.Tensor]:
        return _maker(torch.int32)

    @property
    def LongTensor(self) -> Callable[..., torch.Tensor]:
        return _maker(torch.int64)

    def on_accelerator(self, tensor: torch.Tensor) -> bool:
        return tensor.device.type == NAME

    # Ranges: those of torch.profiler, while it is enabled.

    def range_push(self, msg: str, domain: object = None, category: object = None) -> None:
        mark: Any = torch.profiler.record_function(msg) if _is_profiled() else None
        if mark is not None:
            mark.__enter__()
        self._open_ranges().append(mark)

    def range_pop(self, domain: object = None) -> None:
        marks = self._open_ranges()
        mark = marks.pop() if marks else None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _open_ranges(self) -> list[Any]:
        if not hasattr(self._ranges, "open"):
            self._ranges.open = []
        found: list[Any] = self._ranges.open
        return found

    # Graphs: without the feature, the device module's error says how to add it.

    def is_current_stream_capturing(self) -> bool:
        return bool(backend.is_current_stream_capturing())

    def create_graph(self) -> Any:
        return backend.Graph()

    def capture_to_graph(self, graph: Any, pool: Any = None, stream: Any = None) -> Any:
        return backend.graph(graph, pool, stream)

    def replay_graph(self, graph: Any) -> None:
        graph.replay()

    # Compilation

    def is_triton_supported(self) -> bool:
        return False

    def get_compile_backend(self) -> str:
        return str(self._compile_backend)

    def set_compile_backend(self, backend: str) -> None:
        known = torch._dynamo.list_backends(exclude_tags=())
        if backend not in known:
            raise ValueError(f"torch.compile has no backend '{backend}', only {', '.join(known)}")
        self._compile_backend = backend

    # Processes

    def communication_backend_name(self) -> str:
        if reason := missing_feature_hint("distributed"):
            raise RuntimeError(f"DeepSpeed needs collectives of {NAME}, which was {reason}")
        return str(self._communication_backend_name)

    def export_envs(self) -> list[str]:
        return [f"{ENV_PREFIX}_"]

    def visible_devices_envs(self) -> list[str]:
        return [f"{ENV_PREFIX}_VISIBLE_DEVICES"]

    def set_visible_devices_envs(self, current_env: Any, local_accelerator_ids: Any) -> None:
        """Raise unless the devices are the first ones, as no variable hides the others."""
        ids = [int(index) for index in local_accelerator_ids]
        if ids != list(range(len(ids))):
            raise ValueError(
                f"a process cannot be limited to the devices {ids}: use the first ones of "
                f"{NAME}, with --num_gpus of the launcher"
            )

    def lazy_call(self, callback: Callable[[], object]) -> object:
        return callback()

    # DeepSpeed's own operators

    def op_builder_dir(self) -> str:
        return _deepspeed_operators.BUILDERS

    def create_op_builder(self, class_name: str) -> Any:
        return self.get_op_builder(class_name)()

    def get_op_builder(self, class_name: str) -> Any:
        return _deepspeed_operators.builder(class_name)

    def build_extension(self) -> Any:
        from torch.utils.cpp_extension import BuildExtension

        return BuildExtension


def _computes(dtype: torch.dtype) -> bool:
    return bool(backend.dtype_support(dtype) == "supported")


def _maker(dtype: torch.dtype) -> Callable[..., torch.Tensor]:
    return functools.partial(torch.tensor, dtype=dtype, device=NAME)


def _is_profiled() -> bool:
    return bool(torch._C._autograd._profiler_enabled())
