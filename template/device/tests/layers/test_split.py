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


class Held:
    """A contiguous array on the device."""

    def __init__(self, api: ModuleType, values: np.ndarray[Any, Any]) -> None:
        self._like = np.ascontiguousarray(values)
        self.buffer = api.Buffer(0, values.nbytes)
        self.buffer.write(self._like)
        strides = [stride // values.itemsize for stride in self._like.strides]
        dtype = api.DType[values.dtype.name]
        self.view = self.buffer.view(0, dtype, list(values.shape), strides)

    def read(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.buffer.read(), self._like.dtype).reshape(self._like.shape)


def zeros(api: ModuleType, *shape: int, dtype: Any = np.float32) -> Held:
    return Held(api, np.zeros(shape, dtype=dtype))


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


def assert_same(api: ModuleType, launch: Callable[[], bytes]) -> None:
    """Asserts that launches with and without an index limit have the same result."""
    try:
        results = set()
        for bits in (0, 6):
            api.limit_indices(0, bits)
            results.add(launch())
        assert len(results) == 1
    finally:
        api.limit_indices(0, api.properties(0).max_index_bits)


def test_elementwise_operations(api: ModuleType, stream: Any, limited: None) -> None:
    a, row = numbers(7, 5, 30), numbers(30)
    out, first, second = zeros(api, 7, 5, 30), Held(api, a), Held(api, row)
    wide = second.buffer.view(0, api.DType.float32, [7, 5, 30], [0, 0, 1])
    op, params = api.BinaryOp.add, api.BinaryParams(alpha=1)
    launched(api, stream, "binary", op, out.view, first.view, wide, params)
    assert (out.read() == a + row).all()
    # In place.
    launched(api, stream, "binary", op, out.view, out.view, wide, params)
    assert (out.read() == a + row + row).all()


def test_strides_beyond_the_limit(api: ModuleType, stream: Any, limited: None) -> None:
    out, expected = zeros(api, 2000), np.zeros(2000)
    launched(api, stream, "fill", out.buffer.view(0, api.DType.float32, [3, 4], [600, 40]), 2.0)
    expected[[i * 600 + j * 40 for i in range(3) for j in range(4)]] = 2
    assert (out.read() == expected).all()


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
    source, out = Held(api, values), zeros(api, *expected.shape, dtype=kind)
    launched(api, stream, "reduce", api.ReduceOp[op], out.view, source.view, 2.0)
    np.testing.assert_allclose(out.read(), expected, rtol=1e-5, atol=1e-5)


def test_parts_of_float16_sums_are_float32(api: ModuleType, stream: Any, limited: None) -> None:
    source, out = Held(api, np.ones(5000, dtype=np.float16)), zeros(api, 1, dtype=np.float16)
    launched(api, stream, "reduce", api.ReduceOp.sum, out.view, source.view, 0)
    # Each part may be 63. Sums of these in float16 would be odd numbers beyond 2048, which are
    # rounded.
    assert out.read()[0] == 5000


@pytest.mark.parametrize("op", ["uniform", "normal", "bernoulli", "bits", "integers"])
@pytest.mark.parametrize("strided", [False, True])
def test_random_numbers_are_those_of_one_launch(
    api: ModuleType, stream: Any, op: str, strided: bool
) -> None:
    kind = np.int64 if op in ("bits", "integers") else np.float32
    step = 2 if strided else 1
    philox, a, b = api.PhiloxState(seed=3, offset=5), 0.25, 1.0
    if op == "integers":
        a, b = 0, 1000
    strides = [37 * 11 * step, 11 * step, step]

    def launch() -> bytes:
        out = zeros(api, 4 * 37 * 11 * step, dtype=kind)
        view = out.buffer.view(0, api.DType[np.dtype(kind).name], [4, 37, 11], strides)
        launched(api, stream, "random", api.RandomOp[op], view, philox, a, b)
        return bytes(out.buffer.read())

    assert_same(api, launch)


def test_draws_are_those_of_one_launch(api: ModuleType, stream: Any) -> None:
    values = np.abs(numbers(11, 13)) + 0.1
    a, philox = Held(api, values), api.PhiloxState(seed=3, offset=5)

    def launch() -> bytes:
        out = zeros(api, 11, 13)
        if reason := api.draw(stream, api.DrawOp.gamma, out.view, a.view, None, philox):
            pytest.skip(reason)
        api.synchronize(stream)
        return bytes(out.buffer.read())

    assert_same(api, launch)


def test_products(api: ModuleType, stream: Any, limited: None) -> None:
    # As the weight of a linear layer: its columns are contiguous.
    a, columns, bias = numbers(3, 20, 7), numbers(3, 25, 7), numbers(25)
    b = columns.transpose(0, 2, 1)
    first, second, added = (Held(api, values) for values in (a, columns, bias))
    b_view = second.buffer.view(0, api.DType.float32, [3, 7, 25], [175, 1, 7])
    wide = added.buffer.view(0, api.DType.float32, [3, 20, 25], [0, 0, 1])
    out, params = zeros(api, 3, 20, 25), api.MatmulParams()
    params.beta, params.bias = 1, wide
    launched(api, stream, "matmul", out.view, first.view, b_view, params)
    np.testing.assert_allclose(out.read(), a @ b + bias, rtol=1e-5, atol=1e-5)


def test_a_long_sum_of_products_is_unsupported(api: ModuleType, stream: Any, limited: None) -> None:
    a, b = Held(api, numbers(1, 1, 65)), Held(api, numbers(1, 65, 1))
    out = Held(api, np.full((1, 1, 1), 7, dtype=np.float32))
    product = (out.view, a.view, b.view, api.MatmulParams())
    reason = api.matmul(stream, *product)
    require(api, stream, "matmul", *product)
    assert reason == "an array that is larger than the device's indices reach"
    assert out.read()[0] == 7


def test_sorts(api: ModuleType, stream: Any, limited: None) -> None:
    values = numbers(9, 30)
    source, out, places = Held(api, values), zeros(api, 9, 30), zeros(api, 9, 30, dtype=np.int64)
    launched(api, stream, "sort", out.view, places.view, source.view, 1, False, True)
    assert (out.read() == np.sort(values, 1)).all()
    assert (places.read() == np.argsort(values, 1)).all()


def test_triangles(api: ModuleType, stream: Any, limited: None) -> None:
    values = numbers(40, 50)
    source, out = Held(api, values), zeros(api, 40, 50)
    for op, oracle in (("lower", np.tril), ("upper", np.triu)):
        for diagonal in (-7, 0, 12):
            views = (out.view, source.view)
            launched(api, stream, "triangular", api.TriangularOp[op], *views, diagonal)
            assert (out.read() == oracle(values, diagonal)).all()


def test_sequences(api: ModuleType, stream: Any, limited: None) -> None:
    for kind, start, step in ((np.int64, 5, 3), (np.float32, 0.5, 0.25)):
        out = zeros(api, 300, dtype=kind)
        launched(api, stream, "sequence", out.view, start, step)
        assert (out.read() == start + np.arange(300) * step).all()


def test_gather_from_long_rows(api: ModuleType, stream: Any, limited: None) -> None:
    table = numbers(6, 90)
    # Each row has more than 64 elements, so the table can be split only between its columns.
    index = np.array([3, 0, 5, 5, 1], dtype=np.int64)
    columns, indices, out = Held(api, table.T), Held(api, index), zeros(api, 90, 5)
    op = api.IndexOp.select
    launched(api, stream, "gather", op, out.view, columns.view, [indices.view], 1)
    assert (out.read() == table.T[:, index]).all()


def test_gather_along_a_dimension_of_a_larger_table(
    api: ModuleType, stream: Any, limited: None
) -> None:
    table = numbers(9, 7, 8)
    index = np.random.default_rng(1).integers(0, 7, (6, 30, 6))
    expected = np.take_along_axis(table[:6, :, :6], index, 1)
    held, indices, out = Held(api, table), Held(api, index), zeros(api, *index.shape)
    op, mode = api.IndexOp.along_dim, api.ScatterMode.add
    launched(api, stream, "gather", op, out.view, held.view, [indices.view], 1)
    assert (out.read() == expected).all()
    into, target = np.zeros((9, 7, 8), dtype=np.float32), zeros(api, 9, 7, 8)
    launched(api, stream, "scatter", op, mode, target.view, [indices.view], out.view, 1)
    rows, _, columns = np.indices(index.shape)
    np.add.at(into, (rows, index, columns), expected)
    np.testing.assert_allclose(target.read(), into, rtol=1e-5)


def test_a_limit_can_be_removed(api: ModuleType, stream: Any) -> None:
    a, b, out = Held(api, numbers(1, 1, 65)), Held(api, numbers(1, 65, 1)), zeros(api, 1, 1, 1)
    product = (out.view, a.view, b.view, api.MatmulParams())
    require(api, stream, "matmul", *product)
    before = api.layers()
    for bits, declines in ((6, True), (0, False), (6, True), (7, False), (6, True)):
        api.limit_indices(0, bits)
        for layers in (before, ["validate"]):
            api.set_layers(layers)
            assert (api.matmul(stream, *product) is not None) is declines
        api.set_layers(before)
    api.limit_indices(0, api.properties(0).max_index_bits)


def test_validate_checks_the_limit(api: ModuleType, run_child: Callable[..., Any]) -> None:
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
    said = run_child(code, SIMULATOR_INDEX_BITS="10", DEVICE_LAYERS="validate").stdout
    assert "reaches over 1056 elements, which is more than max_index_bits" in said
