"""Tools on top of the backend: loading data, optimizers, profilers, compilers, collectives."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader

from ... import _C
from ..._build import NAME
from ..._compat import release
from ..surfaces import Declined, backend, expect, surface


def double(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2


def compiled_by(compiler: str) -> None:
    x = torch.ones(2, device=NAME, requires_grad=True)
    compiled: Any = torch.compile(double, backend=compiler)
    compiled(x).sum().backward()
    expected = (torch.cos(x.detach()) * 2).tolist()
    expect(x.grad is not None and x.grad.tolist(), expected)


@surface("data", "DataLoader(pin_memory=True)")
def batches_are_pinned() -> None:
    values: Any = [0, 1]
    (batch,) = DataLoader(values, batch_size=2, pin_memory=True)
    expect((batch.is_pinned(), batch.tolist()), (True, [0, 1]))


@surface("optimizers", "foreach=True, fused=True")
def optimizers_step() -> None:
    for how in ({"foreach": True}, {"fused": True}):
        leaf: Any = torch.ones(2, device=NAME, requires_grad=True)
        leaf.sum().backward()
        torch.optim.SGD([leaf], lr=1.0, **how).step()
        expect(leaf.tolist(), [0.0, 0.0])


@surface("profiler", "ProfilerStubs, by torch.autograd.profiler.profile(use_device=...)")
def operators_are_timed() -> None:
    if not backend.get_device_properties().event_timing:
        raise Declined("the device cannot time events")
    with torch.autograd.profiler.profile(use_device=NAME) as profiled:
        double(torch.ones(2, device=NAME))
    expect(sum(event.device_time_total for event in profiled.key_averages()) > 0)


@surface("profiler", "reportMemoryUsageToProfiler, by profile(profile_memory=True)")
def memory_is_profiled() -> None:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        held = torch.ones(1024, device=NAME)
    used = sum(event.self_device_memory_usage for event in profiled.key_averages())
    expect(used >= held.nbytes)


@surface(
    "profiler",
    "REGISTER_PRIVATEUSE1_PROFILER, by ProfilerActivity.PrivateUse1",
    feature="profiler",
)
def kernels_are_traced() -> None:
    if release() < (2, 12):
        raise Declined(
            f"PyTorch {torch.__version__} does not accept records of devices; 2.12 and later do"
        )
    if ("profiling", "take_activities", True) not in _C.device_functions():
        raise Declined("the device keeps no records: profile(use_device=...) times operators")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiled:
        double(torch.ones(2, device=NAME))
    events: Any = profiled.events()
    kinds = {event.device_type for event in events}
    expect(DeviceType.PrivateUse1 in kinds)


@surface(
    "profiler",
    "REGISTER_PRIVATEUSE1_OBSERVER, by emit_ranges",
    feature="profiler",
)
def operators_are_ranges() -> None:
    if ("ranges", "push_range", True) not in _C.device_functions():
        raise Declined("the device library has no ranges: torch.profiler names operators")
    with backend.emit_ranges():
        double(torch.ones(2, device=NAME))


@surface("compile", 'torch.compile(backend="eager")')
def graphs_are_captured() -> None:
    compiled_by("eager")


@surface("compile", 'torch.compile(backend="aot_eager")')
def graphs_are_differentiated() -> None:
    compiled_by("aot_eager")


@surface(
    "compile",
    'torch.compile(backend="inductor"): Scheduling, PythonWrapperCodegen, CppWrapperCodegen, '
    "WrapperFxCodegen, _inductor_backend_init",
    feature="compile",
)
def code_is_generated() -> None:
    compiled_by("inductor")


@surface("compile", "torch.export")
def modules_are_exported() -> None:
    module = torch.nn.Linear(2, 2).to(NAME)
    x = torch.ones(1, 2, device=NAME)
    exported: Any = torch.export.export(module, (x,)).module()
    expect(exported(x).tolist(), module(x).tolist())


@surface(
    "graphs",
    "GraphImplInterface, by torch.accelerator.Graph",
    feature="graphs",
)
def streams_are_captured() -> None:
    accelerator: Any = torch.accelerator
    if not hasattr(accelerator, "Graph"):
        raise Declined("this PyTorch has no torch.accelerator.Graph")
    if ("graphs", "begin_capture", True) not in backend._C.device_functions():
        raise Declined("the device library has no graphs: launch operators one by one")
    x = torch.ones(2, device=NAME)
    captured = accelerator.Graph()
    with torch.Stream(device=NAME), captured:
        y = x + 1
    captured.replay()
    expect(y.tolist(), [2.0, 2.0])


@surface("distributed", "c10d::Backend, Work", feature="distributed")
def processes_are_grouped() -> None:
    if not distributed.is_available():
        raise Declined("this PyTorch was built without torch.distributed")
    distributed.get_default_backend_for_device(NAME)


@surface("extensions", "torch.library.Library")
def operators_are_added() -> None:
    with torch.library._scoped_library(f"{NAME}_doctor", "DEF") as library:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", double, "PrivateUse1")
        added: Any = getattr(torch.ops, f"{NAME}_doctor").double
        x = torch.ones(2, device=NAME)
        expect(added(x).tolist(), double(x).tolist())


@surface("extensions", "find_package, utils.cpp_extension", feature="extension")
def operators_are_built() -> None:
    installed = Path(backend.cmake_prefix_path).parents[1]
    expect((installed / "include" / NAME / "extension.h").is_file())


@surface("vllm", "vllm.platform_plugins", feature="vllm")
def vllm_finds_the_platform() -> None:
    expect(NAME in {point.name for point in entry_points(group="vllm.platform_plugins")})
