"""Arrays of other libraries: copies both ways, and errors for memory of the device."""

from __future__ import annotations

import numpy
import pytest
import torch
from backend import DEVICE
from support import assert_same


@pytest.mark.ecosystem("numpy")
def test_numpy_imports_a_copy_by_dlpack() -> None:
    x = torch.arange(6.0, device=DEVICE).view(2, 3).t()
    array = numpy.from_dlpack(x, device="cpu")
    assert_same(x, torch.from_dlpack(array))
    array += 1
    assert_same(torch.from_dlpack(array, device=DEVICE), x.cpu() + 1)


@pytest.mark.ecosystem("numpy")
def test_numpy_refuses_device_memory_without_a_copy() -> None:
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu\(\)"):
        numpy.asarray(torch.ones(2, device=DEVICE))
    with pytest.raises(ValueError, match="without copying"):
        numpy.from_dlpack(torch.ones(2, device=DEVICE), device="cpu", copy=False)


@pytest.mark.ecosystem("jax")
def test_jax_imports_and_exports_copies() -> None:
    import jax

    x = torch.arange(6.0, device=DEVICE).view(2, 3).t()
    array = jax.dlpack.from_dlpack(x.cpu())
    assert_same(torch.from_dlpack(array + 1, device=DEVICE), x.cpu() + 1)
    with pytest.raises(TypeError, match="unsupported device"):
        jax.dlpack.from_dlpack(x)


@pytest.mark.ecosystem("polars")
def test_polars_imports_and_exports_copies() -> None:
    import polars

    x = torch.arange(4.0, device=DEVICE)
    frame = polars.DataFrame({"x": x.cpu().numpy()}).select(polars.col("x") + 1)
    assert_same(frame["x"].to_torch().to(DEVICE), x.cpu() + 1)
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu\(\)"):
        polars.Series(x)
