"""The device's own layouts: conversions, products, and unsupported calls."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_library import needs
from kernels.element_types import STORED
from numpy.typing import NDArray
from simulator_knobs import Knobs

GROUP = "layouts"
STRIDED = [0]
TYPES = ("float32", "float64", "float16", "bfloat16", "int32")
# Sizes of matrices: multiples of tiles, other sizes, and sizes below one tile.
SIZES = ((64, 96), (65, 70), (100, 33), (1, 40), (37, 1), (7, 5))

Matrix = NDArray[Any]


class Arrays:
    """Arrays on the device, strided or in a layout."""

    def __init__(self, api: ModuleType, stream: Any) -> None:
        self.api = api
        self.stream = stream

    def new(self, dtype: str, *shape: int, nbytes: int | None = None) -> tuple[Any, Any]:
        """A contiguous array, all bits set: its buffer and its view."""
        size = int(np.prod(shape)) * STORED[dtype].itemsize
        buffer = self.api.Buffer(0, max(nbytes or 0, size))
        buffer.write(np.full(buffer.bytes, 255, np.uint8), 0)
        strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        return buffer, buffer.view(0, self.api.DType[dtype], list(shape), strides)

    def put(self, values: Matrix, dtype: str) -> tuple[Any, Any]:
        """The same with these values."""
        buffer, view = self.new(dtype, *values.shape)
        stored = np.ascontiguousarray(values.astype(STORED[dtype]))
        buffer.write(stored.view(np.uint8).reshape(-1), 0)
        return buffer, view

    def read(self, buffer: Any, dtype: str, *shape: int) -> Matrix:
        self.api.synchronize(self.stream)
        assert buffer.guards_intact()
        numbers = np.frombuffer(buffer.read(), np.uint8)
        count = int(np.prod(shape)) * STORED[dtype].itemsize
        return numbers[:count].view(STORED[dtype]).reshape(shape)

    def pack(self, values: Matrix, dtype: str, layout: list[int]) -> tuple[Any, Any]:
        """The values in a layout."""
        nbytes = self.api.layout_bytes(0, self.api.DType[dtype], list(values.shape), layout)
        assert nbytes > 0
        packed, view = self.new(dtype, *values.shape, nbytes=nbytes)
        kept, strided = self.put(values, dtype)
        reason = self.api.convert_layout(self.stream, view, layout, strided, STRIDED)
        assert reason is None, reason
        self.api.synchronize(self.stream)
        assert kept.guards_intact()
        return packed, view


@pytest.fixture
def arrays(api: ModuleType, stream: Any) -> Arrays:
    return Arrays(api, stream)


def layout_of(api: ModuleType, dtype: str, *sizes: int) -> list[int]:
    """The device's layout for such a weight. Skips the test if it has none."""
    layout: list[int] = api.preferred_layout(0, api.WeightUse.matmul, api.DType[dtype], list(sizes))
    if layout[0] == 0:
        pytest.skip(f"the device has no layout for weights of {dtype}")
    return layout


def layouts_for(api: ModuleType, dtype: str, *sizes: int) -> list[list[int]]:
    """The layouts to test: the device's choice for the type, and other tiles of the simulator."""
    wanted = [
        api.preferred_layout(0, api.WeightUse.matmul, api.DType["float32"], [256, 256]),
        [1, 16, 16],
        [1, 3, 8],
        [1, 1, 1],
    ]
    there = [
        layout
        for layout in wanted
        if layout[0] and api.layout_bytes(0, api.DType[dtype], list(sizes), layout)
    ]
    if not there:
        pytest.skip(f"the device has no layout for {dtype} of {sizes}")
    return there


def values_of(dtype: str, *shape: int) -> Matrix:
    """Small integers, which are exact in every type."""
    numbers = np.random.default_rng(sum(shape)).integers(-2, 3, shape)
    return numbers.astype(STORED[dtype])


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_conversion_to_a_layout_and_back(
    api: ModuleType, stream: Any, arrays: Arrays, dtype: str, sizes: tuple[int, int]
) -> None:
    values = values_of(dtype, *sizes)
    for layout in layouts_for(api, dtype, *sizes):
        packed, view = arrays.pack(values, dtype, layout)
        out, strided = arrays.new(dtype, *sizes)
        assert api.convert_layout(stream, strided, STRIDED, view, layout) is None
        np.testing.assert_array_equal(arrays.read(out, dtype, *sizes), values)
        assert packed.guards_intact()


def test_the_simulator_s_tiles(simulator: Knobs, arrays: Arrays) -> None:
    values = values_of("int32", 5, 7)
    packed, _ = arrays.pack(values, "int32", [1, 2, 4])
    padded = np.zeros((6, 8), np.int32)
    padded[:5, :7] = values
    expected = padded.reshape(3, 2, 2, 4).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(arrays.read(packed, "int32", 3, 2, 2, 4), expected)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_products(
    api: ModuleType,
    stream: Any,
    arrays: Arrays,
    dtype: str,
    sizes: tuple[int, int],
    transposed: bool,
) -> None:
    values = values_of(dtype, *sizes)
    b = values.T if transposed else values
    left = values_of(dtype, 3, b.shape[0])
    bias = values_of(dtype, 3, b.shape[1])
    product = left.astype(np.float64) @ b.astype(np.float64)
    expected = 2 * product + bias.astype(np.float64)
    for layout in layouts_for(api, dtype, *sizes):
        packed, _ = arrays.pack(values, dtype, layout)
        strides = [b.size, 1, sizes[1]] if transposed else [b.size, sizes[1], 1]
        view = packed.view(0, api.DType[dtype], [1, *b.shape], strides)
        a, a_view = arrays.put(left[None], dtype)
        added, bias_view = arrays.put(bias[None], dtype)
        out, out_view = arrays.new(dtype, 1, *bias.shape)
        params = api.MatmulParams()
        params.layout_b = layout
        params.alpha, params.beta, params.bias = 2, 1, bias_view
        reason = api.matmul(stream, out_view, a_view, view, params)
        assert api.matmul(stream, out_view, a_view, view, params, probe=True) == reason
        if reason is not None:
            continue
        got = arrays.read(out, dtype, *bias.shape).astype(np.float64)
        np.testing.assert_allclose(got, expected, rtol=0.02)
        assert a.guards_intact() and added.guards_intact()


def test_unsupported_sizes_and_layouts_have_0_bytes(api: ModuleType) -> None:
    layout = layout_of(api, "float32", 256, 256)
    dtype = api.DType.float32
    assert api.layout_bytes(0, dtype, [256, 256], layout) >= 256 * 256 * 4
    assert api.layout_bytes(0, dtype, [256, 256], [2**40]) == 0
    assert api.layout_bytes(0, dtype, [0, 256], layout) == 0
    assert api.layout_bytes(0, dtype, [2**40, 2**40], layout) == 0
    assert api.preferred_layout(0, api.WeightUse.matmul, api.DType.bool, [256, 256]) == STRIDED


def test_wrong_layouts_have_0_bytes(api: ModuleType, simulator: Knobs) -> None:
    for layout in ([1], [1, 4], [1, 0, 4], [1, -4, 4], [1, 4, 4, 1], [1, 2**40, 2**40], [2, 4, 4]):
        assert api.layout_bytes(0, api.DType.float32, [8, 8], layout) == 0
    assert api.layout_bytes(0, api.DType.float32, [8], [1, 4, 4]) == 0
    assert api.layout_bytes(0, api.DType.int4x2, [8, 8], [1, 4, 4]) == 0


def test_products_with_scales_and_activations_support_layouts(
    api: ModuleType, stream: Any, simulator: Knobs, arrays: Arrays
) -> None:
    left, right = values_of("float32", 3, 8), values_of("float32", 8, 8)
    packed, _ = arrays.pack(right, "float32", [1, 4, 4])
    b = packed.view(0, api.DType.float32, [1, 8, 8], [64, 8, 1])
    _, a = arrays.put(left[None], "float32")
    out, out_view = arrays.new("float32", 1, 3, 8)
    scales = np.arange(1, 9, dtype=np.float32)
    _, scale_view = arrays.put(scales[None, None], "float32")
    params = api.MatmulParams()
    params.layout_b = [1, 4, 4]
    params.activation = api.Activation.relu
    params.scale_b = scale_view
    params.block_b = (8, 1)
    plain = api.MatmulParams()
    plain.scale_b, plain.block_b = params.scale_b, params.block_b
    if reason := api.matmul(stream, out_view, a, b, plain, probe=True):
        pytest.skip(f"the product is unsupported without a layout as well: {reason}")
    assert api.matmul(stream, out_view, a, b, params) is None
    expected = np.maximum(left @ (right * scales), 0)
    np.testing.assert_allclose(arrays.read(out, "float32", 3, 8), expected, rtol=1e-5, atol=1e-5)


def test_layouts_of_grouped_products_are_unsupported(
    api: ModuleType, stream: Any, simulator: Knobs, arrays: Arrays
) -> None:
    layout = [1, 4, 4]
    packed, _ = arrays.pack(values_of("float32", 8, 8), "float32", layout)
    b = packed.view(0, api.DType.float32, [1, 8, 8], [64, 8, 1])
    _, a = arrays.put(values_of("float32", 1, 2, 8), "float32")
    _, out_view = arrays.new("float32", 1, 2, 8)
    _, ends = arrays.put(np.array([2]), "int32")
    params = api.MatmulParams()
    params.layout_b = layout
    params.ragged = api.Ragged.rows
    params.ends = ends
    assert "a matrix in a layout" in api.matmul(stream, out_view, a, b, params, probe=True)


def test_layouts_of_convolutions_are_unsupported(
    api: ModuleType, stream: Any, simulator: Knobs, arrays: Arrays
) -> None:
    needs("convolution")
    _, image = arrays.put(values_of("float32", 1, 2, 4, 4), "float32")
    _, weight = arrays.put(values_of("float32", 2, 2, 1, 1), "float32")
    convolution = api.ConvolutionParams([1, 1], [0, 0], [1, 1], 1, None)
    convolution.layout_weight = [1, 4, 4]
    forward = api.ConvolutionPass.forward
    reason = api.convolution(stream, forward, image, image, weight, convolution, probe=True)
    assert "in a layout" in reason


# --- The layer `validate` ---


def test_the_layer_validate_checks_conversions(
    api: ModuleType, refuses: Callable[..., None], validated: None, stream: Any, arrays: Arrays
) -> None:
    layout = layout_of(api, "float32", 65, 70)
    nbytes = api.layout_bytes(0, api.DType.float32, [65, 70], layout)
    packed, view = arrays.new("float32", 65, 70, nbytes=nbytes)
    kept, strided = arrays.new("float32", 65, 70)

    def convert(out: Any, out_layout: list[int], source: Any, in_layout: list[int]) -> Any:
        return lambda: api.convert_layout(stream, out, out_layout, source, in_layout)

    assert convert(view, layout, strided, STRIDED)() is None
    says = "not exactly one of the two arrays is strided"
    refuses(convert(view, STRIDED, strided, STRIDED), says=says)
    refuses(convert(view, layout, strided, layout), says=says)
    says = "a layout that the device does not have"
    refuses(convert(view, [2**40], strided, STRIDED), says=says)
    refuses(convert(view, layout, view, STRIDED), says="in float32 .* overlaps out|in .* overlaps")
    short, room = arrays.new("float32", 65, 70)
    if nbytes > short.bytes + 4096:
        refuses(convert(room, layout, strided, STRIDED), says="reaches")
    wide = packed.view(0, api.DType.float32, [65, 35], [70, 2])
    _, half = arrays.new("float32", 65, 35)
    refuses(convert(wide, layout, half, STRIDED), says="not contiguous")
    other, larger = arrays.new("float32", 70, 65)
    refuses(convert(view, layout, larger, STRIDED), says="sizes or element types differ")
    assert kept.guards_intact() and other.guards_intact()


def test_the_layer_validate_checks_products(
    api: ModuleType, refuses: Callable[..., None], validated: None, stream: Any, arrays: Arrays
) -> None:
    layout = layout_of(api, "float32", 64, 64)
    nbytes = api.layout_bytes(0, api.DType.float32, [64, 64], layout)
    packed, _ = arrays.new("float32", 64, 64, nbytes=nbytes)
    dtype = api.DType.float32
    whole = packed.view(0, dtype, [1, 64, 64], [4096, 1, 64])
    kept_a, a = arrays.put(values_of("float32", 1, 4, 64), "float32")
    kept_out, out = arrays.new("float32", 1, 4, 64)
    params = api.MatmulParams()
    params.layout_b = layout
    assert api.matmul(stream, out, a, whole, params) is None
    part = packed.view(0, dtype, [1, 32, 64], [4096, 128, 1])
    says = "neither a whole matrix nor"
    refuses(api.matmul, stream, out, a, part, params, says=says)
    params.layout_b = [2**40]
    refuses(api.matmul, stream, out, a, whole, params, says="the device does not have")
    api.synchronize(stream)
    assert kept_a.guards_intact() and kept_out.guards_intact()
