"""Modules: code that is loaded at run time, and its functions."""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from groups.modules.kernel_code import BROKEN, COUNT, VALUES, Scaling, kernels
from making import Make
from runtime.work import THREADS, in_threads, wait_for_failure

GROUP = "modules"
ONE = (1, 1, 1)


def test_the_code_format_is_one_word(api: ModuleType) -> None:
    for device in range(api.device_count()):
        code_format = api.code_format(device)
        assert code_format
        assert " " not in code_format


def test_a_launched_function_computes_its_outputs(
    api: ModuleType, stream: Any, scaling: Scaling
) -> None:
    scaling.launch(stream, 2.5)
    api.synchronize(stream)
    assert (scaling.read() == VALUES * np.float32(2.5)).all()
    scaling.launch(stream, -1, 10)
    api.synchronize(stream)
    assert (scaling.read()[:10] == -VALUES[:10]).all()
    assert (scaling.read()[10:] == VALUES[10:] * np.float32(2.5)).all()
    assert scaling.out.guards_intact()
    assert scaling.source.guards_intact()


def test_function_name_returns_the_name_given_to_find_function(
    api: ModuleType, load: Callable[..., Any]
) -> None:
    module = load()
    functions = {name: api.find_function(module, name) for name in ("scale", "places", "scale")}
    assert {api.function_name(function) for function in functions.values()} == {"scale", "places"}


def test_groups_and_work_items_have_three_dimensions(
    api: ModuleType, stream: Any, load: Callable[..., Any], make: Make
) -> None:
    places = api.find_function(load(), "places")
    grid, group = (2, 3, 4), (5, 2, 3)
    groups, items = 24, 30
    buffer = make.buffer(4 * groups * items)
    buffer.write(np.zeros(buffer.bytes, np.uint8))
    arguments = [(api.ArgumentKind.WRITTEN, buffer.address, buffer.bytes)]
    api.launch_function(stream, places, grid, group, 0, arguments)
    api.synchronize(stream)
    expected = 1000 * np.arange(groups)[:, None] + np.arange(items)
    assert (np.frombuffer(buffer.read(), np.int32) == expected.ravel()).all()
    assert buffer.guards_intact()


def test_a_group_has_shared_memory(
    api: ModuleType, stream: Any, load: Callable[..., Any], make: Make
) -> None:
    reverse = api.find_function(load(), "reverse")
    values = np.arange(256, dtype=np.int32)
    out, source = make.buffer(values.nbytes), make.buffer(values.nbytes)
    source.write(values.view(np.uint8))
    arguments = [
        (api.ArgumentKind.WRITTEN, out.address, out.bytes),
        (api.ArgumentKind.READ, source.address, source.bytes),
    ]
    api.launch_function(stream, reverse, (8, 1, 1), (32, 1, 1), 128, arguments)
    api.synchronize(stream)
    expected = values.reshape(8, 32)[:, ::-1].ravel()
    assert (np.frombuffer(out.read(), np.int32) == expected).all()


def test_launches_are_in_the_order_of_their_stream(
    api: ModuleType, scaling: Scaling, make: Make, stream: Any
) -> None:
    gate = make.gate()
    gate.hold(stream)
    for factor in range(1, 6):
        scaling.launch(stream, factor)
    api.copy_bytes(stream, (scaling.source.address, 0), (scaling.out.address, 0), 4 * COUNT)
    scaling.launch(stream, 2)
    assert not api.is_idle(stream)
    gate.open()
    api.synchronize(stream)
    assert (scaling.read() == VALUES * 10).all()


def test_a_scalar_is_read_during_the_call(
    api: ModuleType, scaling: Scaling, make: Make, stream: Any
) -> None:
    gate = make.gate()
    gate.hold(stream)
    scaling.launch(stream, 3)
    # The memory of the first call's scalars may hold other values now.
    scaling.launch(stream, 4, 1)
    gate.open()
    api.synchronize(stream)
    assert (scaling.read()[1:] == VALUES[1:] * 3).all()


def test_each_device_has_modules_of_its_own(
    api: ModuleType, second_device: int, load: Callable[..., Any], make: Make
) -> None:
    both = [Scaling(api, load(device), make.buffer, device) for device in (0, second_device)]
    streams = [make.stream(scaling.device) for scaling in both]
    for number, (scaling, stream) in enumerate(zip(both, streams, strict=True)):
        scaling.launch(stream, number + 2)
    for number, (scaling, stream) in enumerate(zip(both, streams, strict=True)):
        api.synchronize(stream)
        assert (scaling.read() == VALUES * (number + 2)).all()


def test_two_modules_of_the_same_code_are_separate(
    api: ModuleType, stream: Any, load: Callable[..., Any], make: Make
) -> None:
    first, second = load(), load()
    scaling = Scaling(api, second, make.buffer)
    api.unload_module(first)
    load.modules.remove(first)  # type: ignore[attr-defined]
    scaling.launch(stream, 7)
    api.synchronize(stream)
    assert (scaling.read() == VALUES * 7).all()


def test_a_module_can_be_unloaded_while_its_work_is_pending(
    api: ModuleType, make: Make, stream: Any
) -> None:
    module = api.load_module(0, kernels(api), "")
    scaling = Scaling(api, module, make.buffer)
    gate = make.gate()
    gate.hold(stream)
    scaling.launch(stream, 3)
    api.unload_module(module)
    gate.open()
    api.synchronize(stream)
    assert (scaling.read() == VALUES * 3).all()


def test_several_threads_load_launch_and_unload(api: ModuleType, make: Make) -> None:
    common = api.load_module(0, kernels(api), "")
    own = [(Scaling(api, common, make.buffer), make.stream()) for _ in range(THREADS)]

    def work(number: int) -> None:
        scaling, stream = own[number]
        for round in range(20):
            scaling.function = api.find_function(common, "scale")
            scaling.launch(stream, number + round)
            module = api.load_module(0, kernels(api), "")
            scaling.function = api.find_function(module, "scale")
            scaling.launch(stream, number + round + 1, COUNT // 2)
            api.unload_module(module)
            api.synchronize(stream)
            expected = VALUES * (number + round)
            expected[: COUNT // 2] += VALUES[: COUNT // 2]
            assert (scaling.read() == expected).all()

    in_threads(work)
    api.unload_module(common)


# --- Mistakes ---


def test_invalid_code_is_refused(api: ModuleType, refuses: Callable[..., None]) -> None:
    broken = BROKEN.get(api.code_format(0), b"\x00no code")
    # The message contains the compiler's output.
    said = {"opencl-c": "missing", "elf-host": "is not a shared object"}.get(api.code_format(0), "")
    refuses(api.load_module, 0, broken, "", says=said)


def test_unknown_compiler_options_are_refused(
    api: ModuleType, refuses: Callable[..., None]
) -> None:
    refuses(api.load_module, 0, kernels(api), "--no-such-option", says="no-such-option")


def test_a_missing_function_is_named(
    api: ModuleType, refuses: Callable[..., None], load: Callable[..., Any]
) -> None:
    module = load()
    refuses(api.find_function, module, "shrink", says="has no function shrink")
    assert api.function_name(api.find_function(module, "scale")) == "scale"


def test_wrong_arguments_are_refused_and_nothing_runs(
    api: ModuleType, refuses: Callable[..., None], stream: Any, scaling: Scaling
) -> None:
    def launch(arguments: list[Any], group: tuple[int, int, int] = (64, 1, 1)) -> None:
        api.launch_function(stream, scaling.function, (16, 1, 1), group, 0, arguments)

    good = scaling.arguments(2)
    refuses(launch, good[:3], says="scale takes 4 arguments, and got 3")
    refuses(launch, [*good, good[3]], says="scale takes 4 arguments, and got 5")
    refuses(launch, [*good[:3], struct.pack("q", 5)], says="argument 4 of scale")
    refuses(launch, [*good[:2], good[0], good[3]], says="argument 3 of scale")
    refuses(launch, good, (1 << 20, 1, 1), says="work items")
    api.synchronize(stream)
    assert (scaling.read() == 0).all()
    launch(good)
    api.synchronize(stream)
    assert (scaling.read() == VALUES * 2).all()


def test_an_exception_in_a_kernel_is_a_failure_of_its_stream(
    api: ModuleType, stream: Any, load: Callable[..., Any]
) -> None:
    if api.code_format(0) != "elf-host":
        pytest.skip("kernels of this device cannot throw")
    api.launch_function(stream, api.find_function(load(), "fails"), ONE, ONE, 0, [])
    assert wait_for_failure(api, stream, "out of luck").operation == "fails"
