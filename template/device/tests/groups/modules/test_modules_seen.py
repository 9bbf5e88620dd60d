"""Modules in graphs, activity records and layers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_library import needs
from groups.modules.kernel_code import COUNT, VALUES, Scaling, kernels
from making import Make
from runtime.work import wait_for_failure

GROUP = "modules"
ONE = (1, 1, 1)


def test_a_graph_has_launches_with_their_arguments_and_keeps_their_module(
    api: ModuleType, stream: Any, make: Make
) -> None:
    needs("begin_capture")
    module = api.load_module(0, kernels(api), "")
    scaling = Scaling(api, module, make.buffer)
    api.begin_capture(stream)
    scaling.launch(stream, 2)
    api.copy_bytes(stream, (scaling.source.address, 0), (scaling.out.address, 0), 4 * COUNT)
    scaling.launch(stream, 3, COUNT // 2)
    graph = api.end_capture(stream)
    assert (scaling.read() == 0).all()
    api.unload_module(module)
    for factor in (2, 4):
        api.launch_graph(graph, stream)
        api.synchronize(stream)
        assert (np.frombuffer(scaling.source.read(), np.float32) == VALUES * factor).all()
        assert (scaling.read()[: COUNT // 2] == VALUES[: COUNT // 2] * factor * 3).all()
        assert (scaling.read()[COUNT // 2 :] == VALUES[COUNT // 2 :] * factor).all()
    api.destroy_graph(graph)


def test_a_launch_has_a_record_with_the_functions_name(
    api: ModuleType, stream: Any, make: Make
) -> None:
    needs("start_profiling")
    module = api.load_module(0, kernels(api), "")
    scaling = Scaling(api, module, make.buffer)
    while api.take_activities(100):
        pass
    api.start_profiling()
    api.correlate(77)
    scaling.launch(stream, 2)
    api.correlate(0)
    api.stop_profiling()
    api.synchronize(stream)
    # Read after the module is unloaded.
    api.unload_module(module)
    (record,) = (some for some in api.take_activities(100) if some.stream == stream)
    assert record.kind is api.ActivityKind.KERNEL
    assert record.name == "scale"
    assert record.correlation == 77


def test_a_launch_fails_on_request(
    api: ModuleType, faults: ModuleType, stream: Any, scaling: Scaling
) -> None:
    faults.inject("launch", later=True)
    scaling.launch(stream, 2)
    assert wait_for_failure(api, stream, "injected failure").operation == "scale"
    api.acknowledge_stream(stream)
    scaling.launch(stream, 2)
    api.synchronize(stream)
    assert (scaling.read() == VALUES * 2).all()
    faults.inject("launch")
    with pytest.raises(api.DeviceError, match="injected failure"):
        scaling.launch(stream, 3)


def test_the_layer_validate_checks_launches(
    api: ModuleType,
    refuses: Callable[..., None],
    validated: None,
    second_device: int,
    stream: Any,
    make: Make,
) -> None:
    module = api.load_module(0, kernels(api), "")
    scaling = Scaling(api, module, make.buffer)
    good = scaling.arguments(2)

    def launch(arguments: list[Any], grid: tuple[int, int, int] = ONE, on: Any = stream) -> None:
        api.launch_function(on, scaling.function, grid, ONE, 0, arguments)

    elsewhere = make.stream(second_device)
    refuses(lambda: launch(good, on=elsewhere), says="the function is of device 0, the stream of")
    refuses(launch, good, (4, 0, 1), says="a number of groups or work items is 0")
    kind, address, _size = good[0]
    refuses(launch, [(kind, address, 1 << 40), *good[1:]], says="argument 1 0x.* reaches")
    refuses(launch, [(kind, 4096, 4), *good[1:]], says="argument 1 0x1000 is not in memory")
    refuses(launch, [*good[:3], b""], says="argument 4 is a scalar without bytes")
    refuses(api.load_module, 0, b"", "", says="there is no code")
    launch(good)
    api.unload_module(module)
    refuses(launch, good, says="function 0x.* was destroyed")
    refuses(api.find_function, module, "scale", says="module 0x.* was destroyed")


def test_unordered_uses_of_memory_are_reported(
    api: ModuleType, restored_layers: None, load: Any, make: Make
) -> None:
    api.set_layers(["streams"])
    first, second, third = (make.stream() for _ in range(3))
    module = load()
    scaling, reader = Scaling(api, module, make.buffer), Scaling(api, module, make.buffer)
    scaling.launch(first, 2)
    reader.source, own = scaling.source, reader.source
    reader.launch(second, 2)  # both read
    reader.source = scaling.out
    with pytest.raises(api.DeviceError, match=r"(?s)scale.*nothing orders the two"):
        reader.launch(third, 2)
    reader.source = own
    api.synchronize_device(0)


def test_addresses_in_arguments_are_translated(
    second_device: int, run_child: Callable[..., Any]
) -> None:
    code = f"""
        import struct, sys
        sys.path.insert(0, {str(Path(__file__).parents[2])!r})
        import _device as api
        from groups.modules.kernel_code import kernels
        for device in (0, {second_device}):
            buffer = api.Buffer(device, 4)
            function = api.find_function(api.load_module(device, kernels(api, device), ""), "places")
            arguments = [(api.ArgumentKind.WRITTEN, buffer.address, 4)]
            stream = api.default_stream(device)
            api.launch_function(stream, function, (1, 1, 1), (1, 1, 1), 0, arguments)
            api.synchronize_device(device)
            assert buffer.read() == bytes(4)
            assert buffer.guards_intact()
        print("translated")
    """
    lines = "\n".join(line[8:] for line in code.splitlines())
    done = run_child(lines, DEVICE_LAYERS="validate,same_addresses,trace")
    assert done.stdout == "translated\n", done.stderr


def test_a_trace_of_launches_names_the_function(run_child: Callable[..., Any]) -> None:
    code = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[2])!r})
        import _device as api
        from groups.modules.kernel_code import kernels
        buffer = api.Buffer(0, 4)
        function = api.find_function(api.load_module(0, kernels(api), ""), "places")
        arguments = [(api.ArgumentKind.WRITTEN, buffer.address, 4)]
        api.launch_function(api.default_stream(0), function, (1, 1, 1), (1, 1, 1), 0, arguments)
        api.synchronize_device(0)
    """
    lines = "\n".join(line[8:] for line in code.splitlines())
    done = run_child(lines, TRACE="launches")
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert " launch] launch_function(stream 0x" in line
    assert "places" in line
    assert "default stream" in line
