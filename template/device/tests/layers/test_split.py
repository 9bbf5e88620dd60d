"""Launches of arrays beyond a device's index limit, which are split above the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

Floats = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture
def limited(api: ModuleType) -> Iterator[None]:
    """Devices with an index limit of 64 elements."""
    api.limit_indices(0, 6)
    yield
    api.limit_indices(0, api.properties(0).max_index_bits)


def make(api: ModuleType, values: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """A buffer and the view of all of it."""
    buffer = api.Buffer(0, values.nbytes)
    buffer.write(np.ascontiguousarray(values))
    strides = [stride // values.itemsize for stride in np.ascontiguousarray(values).strides]
    return buffer, buffer.view(0, api.DType[values.dtype.name], list(values.shape), strides)


def read(buffer: Any, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(buffer.read(), like.dtype).reshape(like.shape)


def numbers(*shape: int) -> Floats:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def require(api: ModuleType, stream: Any, family: str, *arguments: Any) -> None:
    """Skip the test if the device does not support the call in one launch."""
    api.limit_indices(0, 0)
    reason = getattr(api, family)(stream, *arguments, probe=True)
    api.limit_indices(0, api.properties(0).max_index_bits)
    if reason is not None:
        pytest.skip(f"the device does not support {family}: {reason}")


def launched(api: ModuleType, stream: Any, family: str, *arguments: Any) -> None:
    """Asserts that probe and launch have the same answer, and waits."""
    call = getattr(api, family)
    if call(stream, *arguments, probe=True) is not None:
        require(api, stream, family, *arguments)
        pytest.fail("supported in one launch, but not in several")
    assert call(stream, *arguments) is None
    api.synchronize(stream)


def test_elements_by_themselves(api: ModuleType, stream: Any, limited: None) -> None:
    a, row = numbers(7, 5, 30), numbers(30)
    (out, out_view), (_a, a_view), (kept, _) = (
        make(api, np.zeros_like(a)),
        make(api, a),
        make(api, row),
    )
    wide = kept.view(0, api.DType.float32, [7, 5, 30], [0, 0, 1])
    op = api.BinaryOp.add
    launched(api, stream, "binary", op, out_view, a_view, wide, api.BinaryParams(alpha=1))
    assert (read(out, a) == a + row).all()
    # In place.
    launched(api, stream, "binary", op, out_view, out_view, wide, api.BinaryParams(alpha=1))
    assert (read(out, a) == a + row + row).all()


def test_far_apart_but_few(api: ModuleType, stream: Any, limited: None) -> None:
    held = np.zeros(2000, dtype=np.float32)
    buffer, _ = make(api, held)
    launched(api, stream, "fill", buffer.view(0, api.DType.float32, [3, 4], [600, 40]), 2.0)
    held[[i * 600 + j * 40 for i in range(3) for j in range(4)]] = 2
    assert (read(buffer, held) == held).all()


@pytest.mark.parametrize("axes", [(0, 1, 2), (0,), (1,), (2,), (0, 2)])
@pytest.mark.parametrize("op", ["sum", "mean", "max", "count_nonzero", "norm", "logsumexp"])
def test_reductions(
    api: ModuleType, stream: Any, limited: None, op: str, axes: tuple[int, ...]
) -> None:
    values = numbers(9, 13, 17)
    oracles: dict[str, Callable[[Floats], Any]] = {
        "sum": lambda x: x.sum(axes, keepdims=True),
        "mean": lambda x: x.mean(axes, keepdims=True),
        "max": lambda x: x.max(axes, keepdims=True),
        "count_nonzero": lambda x: (x != 0).sum(axes, keepdims=True),
        "norm": lambda x: np.sqrt((x * x).sum(axes, keepdims=True)),
        "logsumexp": lambda x: np.log(np.exp(x).sum(axes, keepdims=True)),
    }
    expected = np.asarray(oracles[op](values.astype(np.float64)))
    kind = np.int64 if op == "count_nonzero" else np.float32
    _kept, in_view = make(api, values)
    out, out_view = make(api, np.zeros(expected.shape, dtype=kind))
    launched(api, stream, "reduce", api.ReduceOp[op], out_view, in_view, 2.0)
    np.testing.assert_allclose(read(out, expected.astype(kind)), expected, rtol=1e-5, atol=1e-5)


def test_parts_of_narrow_sums_are_wide(api: ModuleType, stream: Any, limited: None) -> None:
    values = np.ones(5000, dtype=np.float16)
    _kept, in_view = make(api, values)
    out, out_view = make(api, np.zeros(1, dtype=np.float16))
    launched(api, stream, "reduce", api.ReduceOp.sum, out_view, in_view, 0)
    # Each part may be 63. Sums of these in float16 would be odd numbers beyond 2048, which are
    # rounded.
    assert read(out, np.zeros(1, dtype=np.float16))[0] == 5000


@pytest.mark.parametrize("op", ["uniform", "normal", "bernoulli", "bits", "integers"])
@pytest.mark.parametrize("strided", [False, True])
def test_random_numbers_are_those_of_one_launch(
    api: ModuleType, stream: Any, op: str, strided: bool
) -> None:
    kind = np.int64 if op in ("bits", "integers") else np.float32
    held = np.zeros(4 * 37 * 11 * (2 if strided else 1), dtype=kind)
    results = []
    for bits in (0, 6):
        buffer, _ = make(api, held)
        strides = [37 * 22, 22, 2] if strided else [37 * 11, 11, 1]
        view = buffer.view(0, api.DType[held.dtype.name], [4, 37, 11], strides)
        api.limit_indices(0, bits)
        a, b = (0, 1000) if op == "integers" else (0.25, 1.0)
        launched(
            api, stream, "random", api.RandomOp[op], view, api.PhiloxState(seed=3, offset=5), a, b
        )
        results.append(buffer.read())
    api.limit_indices(0, api.properties(0).max_index_bits)
    assert results[0] == results[1]


def test_draws_are_those_of_one_launch(api: ModuleType, stream: Any) -> None:
    values = np.abs(numbers(11, 13)) + 0.1
    _kept, a = make(api, values)
    results = []
    for bits in (0, 6):
        out, view = make(api, np.zeros_like(values))
        api.limit_indices(0, bits)
        philox = api.PhiloxState(seed=3, offset=5)
        if reason := api.draw(stream, api.DrawOp.gamma, view, a, None, philox):
            api.limit_indices(0, 0)
            pytest.skip(reason)
        api.synchronize(stream)
        results.append(out.read())
    api.limit_indices(0, api.properties(0).max_index_bits)
    assert results[0] == results[1]


def test_products(api: ModuleType, stream: Any, limited: None) -> None:
    # As the weight of a linear layer: its columns are contiguous.
    a, columns, bias = numbers(3, 20, 7), numbers(3, 25, 7), numbers(25)
    b = columns.transpose(0, 2, 1)
    (_a, a_view), (held, _), (kept, _) = make(api, a), make(api, columns), make(api, bias)
    b_view = held.view(0, api.DType.float32, [3, 7, 25], [175, 1, 7])
    wide = kept.view(0, api.DType.float32, [3, 20, 25], [0, 0, 1])
    expected = a @ b + bias
    out, out_view = make(api, np.zeros_like(expected))
    params = api.MatmulParams()
    params.beta, params.bias = 1, wide
    launched(api, stream, "matmul", out_view, a_view, b_view, params)
    np.testing.assert_allclose(read(out, expected), expected, rtol=1e-5, atol=1e-5)


def test_a_long_sum_of_products_is_declined(api: ModuleType, stream: Any, limited: None) -> None:
    a, b = numbers(1, 1, 65), numbers(1, 65, 1)
    (_a, a_view), (_b, b_view) = make(api, a), make(api, b)
    out, out_view = make(api, np.full((1, 1, 1), 7, dtype=np.float32))
    product = (out_view, a_view, b_view, api.MatmulParams())
    reason = api.matmul(stream, *product)
    require(api, stream, "matmul", *product)
    assert reason == "an array that is larger than the device's indices reach"
    assert read(out, np.zeros(1, dtype=np.float32))[0] == 7


def test_rows_in_order(api: ModuleType, stream: Any, limited: None) -> None:
    values = numbers(9, 30)
    _kept, in_view = make(api, values)
    (out, out_view), (places, places_view) = (
        make(api, np.zeros_like(values)),
        make(api, np.zeros(values.shape, dtype=np.int64)),
    )
    launched(api, stream, "sort", out_view, places_view, in_view, 1, False, True)
    assert (read(out, values) == np.sort(values, 1)).all()
    assert (read(places, np.zeros(values.shape, np.int64)) == np.argsort(values, 1)).all()


def test_triangles(api: ModuleType, stream: Any, limited: None) -> None:
    values = numbers(40, 50)
    _kept, in_view = make(api, values)
    out, out_view = make(api, np.zeros_like(values))
    for op, oracle in (("lower", np.tril), ("upper", np.triu)):
        for diagonal in (-7, 0, 12):
            launched(api, stream, "triangular", api.TriangularOp[op], out_view, in_view, diagonal)
            assert (read(out, values) == oracle(values, diagonal)).all()


def test_sequences(api: ModuleType, stream: Any, limited: None) -> None:
    for kind, start, step in ((np.int64, 5, 3), (np.float32, 0.5, 0.25)):
        out, view = make(api, np.zeros(300, dtype=kind))
        launched(api, stream, "sequence", view, start, step)
        expected = (start + np.arange(300) * step).astype(kind)
        assert (read(out, expected) == expected).all()


def test_places(api: ModuleType, stream: Any, limited: None) -> None:
    table = numbers(6, 90)
    # Each row has more than 64 elements, so the table can be split only between its columns.
    index = np.array([3, 0, 5, 5, 1], dtype=np.int64)
    (_t, table_view), (_i, index_view) = make(api, table.T.copy()), make(api, index)
    out, out_view = make(api, np.zeros((90, 5), dtype=np.float32))
    launched(api, stream, "gather", api.IndexOp.select, out_view, table_view, [index_view], 1)
    assert (read(out, np.zeros((90, 5), np.float32)) == table.T[:, index]).all()


def test_places_along_a_dimension_of_a_larger_table(
    api: ModuleType, stream: Any, limited: None
) -> None:
    table = numbers(9, 7, 8)
    index = np.random.default_rng(1).integers(0, 7, (6, 30, 6))
    expected = np.take_along_axis(table[:6, :, :6], index, 1)
    (_t, table_view), (_i, index_view) = make(api, table), make(api, index)
    out, out_view = make(api, np.zeros_like(expected))
    op = api.IndexOp.along_dim
    launched(api, stream, "gather", op, out_view, table_view, [index_view], 1)
    assert (read(out, expected) == expected).all()
    into = np.zeros((9, 7, 8), dtype=np.float32)
    target, target_view = make(api, into)
    mode = api.ScatterMode.add
    launched(api, stream, "scatter", op, mode, target_view, [index_view], out_view, 1)
    rows, _, columns = np.indices(index.shape)
    np.add.at(into, (rows, index, columns), expected)
    np.testing.assert_allclose(read(target, into), into, rtol=1e-5)


def test_a_limit_is_taken_back(api: ModuleType, stream: Any) -> None:
    a, b = numbers(1, 1, 65), numbers(1, 65, 1)
    (_a, a_view), (_b, b_view) = make(api, a), make(api, b)
    _out, out_view = make(api, np.zeros((1, 1, 1), dtype=np.float32))
    require(api, stream, "matmul", out_view, a_view, b_view, api.MatmulParams())
    layers = api.layers()
    for bits, declines in ((6, True), (0, False), (6, True), (7, False), (6, True)):
        api.limit_indices(0, bits)
        reason = api.matmul(stream, out_view, a_view, b_view, api.MatmulParams())
        assert (reason is not None) is declines
        api.set_layers(["validate"])
        reason = api.matmul(stream, out_view, a_view, b_view, api.MatmulParams())
        assert (reason is not None) is declines
        api.set_layers(layers)
    api.limit_indices(0, api.properties(0).max_index_bits)


def test_the_layer_validate_knows_the_limit(api: ModuleType, run_child: Callable[..., Any]) -> None:
    if "SIMULATOR" not in f"{api.properties(0).name}".upper():
        pytest.skip("the simulator's setting")
    code = """
import _device
buffer = _device.Buffer(0, 8192)
view = buffer.view(0, _device.DType.float32, [33, 32], [32, 1])
try:
    _device.fill(_device.default_stream(0), view, 1.0)
except _device.DeviceError as error:
    print(error)
_device.limit_indices(0, _device.properties(0).max_index_bits)
assert _device.fill(_device.default_stream(0), view, 1.0) is None
_device.synchronize(0)
"""
    prefix = api.ENV_PREFIX
    settings = {f"{prefix}_SIMULATOR_INDEX_BITS": "10", f"{prefix}_DEVICE_LAYERS": "validate"}
    said = run_child(code, **settings).stdout
    assert "reaches over 1056 elements, which is more than max_index_bits" in said
