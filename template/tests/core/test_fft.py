"""torch.fft against the CPU, natively: values, strides, gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import assert_same, compare, compare_gradients, layouts, natively, needs, sample

Transform = Callable[..., torch.Tensor]

pytestmark = needs(torch.float32, torch.complex64)

FROM_REAL = ("fft", "ifft", "rfft", "ihfft", "fft2", "ifft2", "rfft2", "ihfft2", "fftn", "ifftn",
             "rfftn", "ihfftn")  # fmt: skip
FROM_COMPLEX = ("fft", "ifft", "hfft", "irfft", "fft2", "ifft2", "hfft2", "irfft2", "fftn", "ifftn",
                "hfftn", "irfftn")  # fmt: skip
CASES = [
    *((name, torch.float32) for name in FROM_REAL),
    *((name, torch.complex64) for name in FROM_COMPLEX),
]
WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def transform(name: str) -> Transform:
    function: Transform = getattr(torch.fft, name)
    return function


def parts(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def test_every_transform_is_tested() -> None:
    others = {"Tensor", "fftfreq", "rfftfreq", "fftshift", "ifftshift"}
    assert set(torch.fft.__all__) - others <= {*FROM_REAL, *FROM_COMPLEX}


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_values_and_strides(name: str, dtype: torch.dtype, norm: str | None) -> None:
    function = transform(name)
    for values in [*layouts(4, 6, 5, dtype=dtype), *layouts(3, 9, 16, dtype=dtype)]:
        compare(lambda x: function(x, norm=norm), values, rtol=1e-4, atol=1e-3)
        assert function(values.to(DEVICE)).stride() == function(values.to(DEVICE).cpu()).stride()


@pytest.mark.parametrize("wide", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", ["fft", "ifftn", "rfft2", "irfft", "hfft", "ihfftn"])
def test_in_double_precision(name: str, wide: torch.dtype) -> None:
    if not {torch.float64, torch.complex128} <= set(backend.supported_dtypes()):
        pytest.skip("generated without float64 or complex128")
    if wide.is_complex and name in ("rfft2", "ihfftn"):
        pytest.skip("takes real numbers")
    values = sample(3, 10, 12, dtype=wide)
    compare(transform(name), values, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("size", [1, 3, 8, 13, 24])
@pytest.mark.parametrize(
    ("name", "dtype"), [case for case in CASES if not case[0].endswith("n")], ids=str
)
def test_cut_and_padded(name: str, dtype: torch.dtype, size: int) -> None:
    function = transform(name)
    sizes = (size, 5) if name.endswith("2") else size
    compare(lambda x: function(x, sizes), sample(4, 7, 10, dtype=dtype), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_dimensions_in_any_order(name: str) -> None:
    dtype = torch.float32 if name in ("rfftn", "ihfftn") else torch.complex64
    values = sample(3, 4, 5, 6, dtype=dtype).permute(2, 0, 3, 1)
    function = transform(name)
    for count in (1, 2, 3, 4):
        for dims in list(itertools.permutations(range(4), count))[:8]:
            compare(lambda x, dims=dims: function(x, dim=dims), values, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_gradients(name: str, dtype: torch.dtype) -> None:
    function = transform(name)
    compare_gradients(
        lambda x: parts(function(x)),
        sample(3, 4, 6, dtype=dtype, low=-1, high=1),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_out(name: str, dtype: torch.dtype) -> None:
    function = transform(name)
    values = sample(3, 4, 6, dtype=dtype)
    expected = function(values)
    with natively():
        out = torch.empty(0, dtype=expected.dtype, device=DEVICE)
        assert function(values.to(DEVICE), out=out) is out
        base = torch.zeros(
            *expected.shape[:-1], 2 * expected.shape[-1], dtype=out.dtype, device=DEVICE
        )
        function(values.to(DEVICE), out=base[..., ::2])
    assert_same(out, expected, rtol=1e-4, atol=1e-3)
    assert_same(base[..., ::2], expected, rtol=1e-4, atol=1e-3)
    assert base[..., 1::2].eq(0).all().item()


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_without_elements(name: str, dtype: torch.dtype) -> None:
    function = transform(name)
    # MKL refuses a batch of none; other libraries and devices do not.
    dim = (1, 2) if name[-1] in "2n" else 2
    with natively():
        empty = function(sample(0, 4, 6, dtype=dtype).to(DEVICE), dim=dim)
    full = function(sample(2, 4, 6, dtype=dtype), dim=dim)
    assert (empty.shape, empty.dtype) == ((0, *full.shape[1:]), full.dtype)
    for shape in ((3, 0), (3, 4, 0)):
        for device in ("cpu", DEVICE):
            with pytest.raises(RuntimeError, match="Invalid number of data points"):
                function(sample(*shape, dtype=dtype).to(device))


def test_conjugate_and_negative_views() -> None:
    values = sample(4, 8, dtype=torch.complex64)
    compare(lambda x: torch.fft.fft(x.conj()), values, rtol=1e-4, atol=1e-3)
    compare(lambda x: torch.fft.rfft(x.conj().imag), values, rtol=1e-4, atol=1e-3)


def test_expanded_inputs() -> None:
    values = sample(1, 8, dtype=torch.complex64)
    compare(lambda x: torch.fft.fft(x.expand(5, -1)), values, rtol=1e-4, atol=1e-3)
    compare(lambda x: torch.fft.fft2(x.T.expand(-1, 3)), values, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_an_element_that_repeats(name: str, dtype: torch.dtype) -> None:
    function = transform(name)
    for shape in ((1, 1, 1), (3, 1, 1), (1, 1, 8), (3, 4, 1)):
        values = sample(*shape, dtype=dtype)
        for size in (8, 9):
            compare(lambda x, size=size: function(x.expand(3, 4, -1 if x.size(2) > 1 else size)), values,
                    rtol=1e-4, atol=1e-3)  # fmt: skip


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_gradients_of_sums(name: str, dtype: torch.dtype) -> None:
    """Such a gradient arrives as one element that repeats."""
    function = transform(name)
    values = sample(3, 4, 6, dtype=dtype, low=-1, high=1)
    gradients = []
    for device in ("cpu", DEVICE):
        leaf = values.to(device, copy=True).requires_grad_()
        parts(function(leaf)).sum().backward()
        assert leaf.grad is not None
        gradients.append(leaf.grad)
    assert_same(gradients[1], gradients[0], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("length", [1 << 15, 12_000, 4999, 10_006])
def test_long_lines(length: int) -> None:
    for shape in ((length,), (length, 2), (9, length)):
        values = sample(*shape, dtype=torch.complex64, low=-1, high=1)
        dim = shape.index(length)
        compare(lambda x, dim=dim: torch.fft.fft(x, dim=dim), values, rtol=1e-3, atol=1e-2)
        compare(lambda x, dim=dim: torch.fft.rfft(x.real, dim=dim), values, rtol=1e-3, atol=1e-2)
        compare(lambda x, dim=dim: torch.fft.hfft(x, dim=dim), values, rtol=1e-3, atol=2e-2)


def test_spectrograms_and_back() -> None:
    signal = sample(2, 400, low=-1, high=1)

    def spectrogram(x: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(64, device=x.device)
        return torch.stft(x, 64, 16, window=window, return_complex=True)

    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(64, device=x.device)
        return torch.istft(spectrogram(x), 64, 16, window=window, length=400)

    compare(spectrogram, signal, rtol=1e-4, atol=1e-4)
    compare(there_and_back, signal, rtol=1e-4, atol=1e-4)
    compare_gradients(lambda x: spectrogram(x).abs(), signal, rtol=1e-3, atol=1e-3)


def test_what_the_cpu_refuses_is_refused() -> None:
    refused: list[Callable[[Any], torch.Tensor]] = [
        lambda device: torch.fft.fft(torch.ones(4, device=device), norm="other"),
        lambda device: torch.fft.rfft(torch.ones(4, dtype=torch.complex64, device=device)),
        lambda device: torch.fft.fft(torch.ones(4, device=device), dim=3),
        lambda device: torch.fft.fftn(torch.ones(4, 4, device=device), dim=(0, 0)),
    ]
    for use in refused:
        errors = []
        for device in ("cpu", DEVICE):
            with pytest.raises((RuntimeError, IndexError, TypeError)) as caught:
                use(device)
            errors.append(caught.value)
        assert type(errors[0]) is type(errors[1])
