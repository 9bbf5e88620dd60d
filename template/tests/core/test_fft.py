"""torch.fft of tensors without elements, and exact zeros; the conformance tests cover the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import natively, needs, sample

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


def transform(name: str) -> Transform:
    function: Transform = getattr(torch.fft, name)
    return function


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_empty_inputs(name: str, dtype: torch.dtype) -> None:
    function = transform(name)
    # MKL refuses an empty batch; other libraries and devices do not.
    dim = (1, 2) if name[-1] in "2n" else 2
    with natively():
        empty = function(sample(0, 4, 6, dtype=dtype).to(DEVICE), dim=dim)
    full = function(sample(2, 4, 6, dtype=dtype), dim=dim)
    assert (empty.shape, empty.dtype) == ((0, *full.shape[1:]), full.dtype)
    for shape in ((3, 0), (3, 4, 0)):
        for device in ("cpu", DEVICE):
            with pytest.raises(RuntimeError, match="Invalid number of data points"):
                function(sample(*shape, dtype=dtype).to(device))


@pytest.mark.native
@pytest.mark.parametrize("length", [4, 6, 10, 64, 96])
def test_results_that_are_real_have_no_imaginary_part(length: int) -> None:
    ends = torch.fft.rfft(sample(length).to(DEVICE))[[0, -1]].cpu()
    assert ends.imag.tolist() == [0, 0]
