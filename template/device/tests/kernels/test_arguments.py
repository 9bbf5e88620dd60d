"""Memory of spans, pointers and strings in the arguments is valid only during the call.

Each test blocks the stream, launches, and launches again with other arguments, which overwrite the
first ones in memory. Then the work of the first launch runs.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_library import needs
from kernels import layouts
from kernels.harness import Array, Device
from kernels.support import Case


def test_a_list_of_indices_is_copied(
    api: ModuleType, device: Device, stream: Any, gate: Any
) -> None:
    table = device.array("float32", (4, 5), values=np.arange(20).reshape(4, 5))
    outs = [device.array("float32", (3,)) for _ in range(2)]
    lists = [
        [device.array("int64", (3,), values=np.asarray(values)) for values in both]
        for both in (([0, 1, 2], [4, 3, 2]), ([3, 3, 3], [0, 0, 0]))
    ]
    case = Case("gather", "index", "float32", "contiguous")
    gate.hold(stream)
    for out, indices in zip(outs, lists, strict=True):
        device.launch(case, stream, api.IndexOp["index"], out, table, indices, 0)
    gate.open()
    api.synchronize(stream)
    assert outs[0].read().tolist() == [4, 8, 12]
    assert outs[1].read().tolist() == [15, 15, 15]


def test_a_list_of_outputs_is_copied(
    api: ModuleType, device: Device, stream: Any, gate: Any
) -> None:
    needs("unscale")
    lists: list[list[Array]] = [
        [device.array("float32", (size,), values=np.ones(size)) for size in (3, 4, 5)]
        for _ in range(2)
    ]
    found = device.array("float32", (1,), values=np.zeros(1))
    factors = [device.array("float32", (1,), values=np.full(1, factor)) for factor in (0.5, 0.25)]
    case = Case("unscale", "unscale", "float32", "contiguous")
    gate.hold(stream)
    for arrays, factor in zip(lists, factors, strict=True):
        device.launch(case, stream, arrays, found, factor)
    gate.open()
    api.synchronize(stream)
    for arrays, value in zip(lists, (0.5, 0.25), strict=True):
        assert all((array.read() == value).all() for array in arrays)


def test_an_optional_view_is_copied(
    api: ModuleType, device: Device, stream: Any, gate: Any
) -> None:
    needs("arg_reduce")
    given = device.array("float32", (2, 3), values=np.arange(6).reshape(2, 3))
    values = [device.array("float32", (2, 1)) for _ in range(2)]
    indices = [device.array("int64", (2, 1)) for _ in range(2)]
    gate.hold(stream)
    for name, value, index in zip(("max", "min"), values, indices, strict=True):
        case = Case("arg_reduce", name, "float32", "contiguous")
        device.launch(case, stream, api.ArgReduceOp[name], value, index, given, 1)
    gate.open()
    api.synchronize(stream)
    assert values[0].read().tolist() == [[2], [5]]
    assert values[1].read().tolist() == [[0], [3]]


def test_a_string_is_copied(api: ModuleType, device: Device, stream: Any, gate: Any) -> None:
    needs("check")
    wrong, right = (device.array("bool", (1,), layouts.contiguous, np.full(1, v)) for v in (0, 1))
    case = Case("check", "-", "bool", "contiguous")
    gate.hold(stream)
    device.launch(case, stream, wrong, "the first text, of which nothing else is kept")
    device.launch(case, stream, right, "another text of the very same length as it is")
    gate.open()
    if device.probes_only:
        return
    with pytest.raises(api.DeviceError, match="the first text, of which nothing else is kept"):
        api.synchronize(stream)
