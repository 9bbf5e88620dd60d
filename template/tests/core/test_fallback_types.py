"""Dtypes that the CPU's kernels lack: the fallback computes in a wider one, if other accelerators
accept them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from core.comparisons import close
from support import assert_same, needs, run_python, sample, supported
from torch.nn import functional

pytestmark = needs(torch.float32)

LOW = supported(torch.float16, torch.bfloat16)


def reason(operator: str) -> str:
    return " ".join(
        record.reason for name, record in backend.fallback_stats().items() if operator in name
    )


def pooled(x: torch.Tensor) -> torch.Tensor:
    places = torch.full((2, 3, 2), 0.5, dtype=x.dtype, device=x.device)
    return functional.fractional_max_pool2d(x, 2, output_size=(4, 4), _random_samples=places)


def margins(x: torch.Tensor) -> torch.Tensor:
    return functional.multi_margin_loss(x[0, 0], torch.arange(8, device=x.device))


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: functional.interpolate(x, size=(5, 5), mode="bilinear", antialias=True),
        lambda x: functional.interpolate(x, size=(5, 5), mode="bicubic", antialias=True),
        lambda x: functional.avg_pool3d(x, 2),
        lambda x: functional.rrelu(x, training=False),
        lambda x: torch.cdist(x, x),
        lambda x: torch.special.bessel_j0(x),
        lambda x: torch.special.zeta(x.abs() + 2, 2.5),
        lambda x: torch.linalg.svdvals(x),
        margins,
        pooled,
    ],
)
@needs(torch.int64)
def test_low_precision(function: Callable[[torch.Tensor], Any], dtype: torch.dtype) -> None:
    values = sample(2, 3, 8, 8, dtype=dtype, low=-1, high=1)
    result = function(values.to(DEVICE))
    assert_same(result, function(values.float()).to(dtype), **close(dtype))


@pytest.mark.parametrize("dtype", LOW)
def test_out_and_in_place_keep_their_dtype(dtype: torch.dtype) -> None:
    values = sample(3, 4, dtype=dtype)
    expected = torch.special.bessel_j0(values.float()).to(dtype)
    out = torch.empty(0, dtype=dtype, device=DEVICE)
    assert torch.special.bessel_j0(values.to(DEVICE), out=out) is out
    assert_same(out, expected, **close(dtype))
    base = torch.zeros(4, 6, dtype=dtype, device=DEVICE)
    torch.special.bessel_j0(values.to(DEVICE), out=base.T[:3])
    assert_same(base.T[:3].contiguous(), expected, **close(dtype))
    assert base[:, 3:].eq(0).all().item()


@pytest.mark.parametrize("dtype", LOW)
def test_the_report_names_the_wider_dtype(dtype: torch.dtype) -> None:
    values = sample(3, dtype=dtype).to(DEVICE)
    torch.special.bessel_j0(values.float())
    assert reason("bessel_j0") == "no kernel"
    torch.special.bessel_j0(values)
    name = str(dtype).removeprefix("torch.")
    assert f"the CPU has no {name} either: computed in float32" in reason("bessel_j0")


def only(*dtypes: torch.dtype) -> Callable[[torch.Tensor], None]:
    """Return a check like that of ATen's macros in a kernel that is compiled for these dtypes."""
    names = {torch.float16: "Half", torch.bfloat16: "BFloat16", torch.int32: "Int"}

    def check(tensor: torch.Tensor) -> None:
        if tensor.dtype not in dtypes:
            name = names.get(tensor.dtype, str(tensor.dtype))
            raise NotImplementedError(f"\"nms_kernel\" not implemented for '{name}'")

    return check


@pytest.mark.parametrize("dtype", [*LOW, torch.int32])
def test_errors_of_other_libraries_operators_are_raised(
    library: torch.library.Library, dtype: torch.dtype
) -> None:
    """In another dtype it might give results that its authors did not intend."""
    library.define("count(Tensor x) -> Tensor")
    calls = []

    def count(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.dtype)
        only(torch.float32, torch.float64)(x)
        return x * 2

    library.impl("count", count, "CPU")
    values = torch.tensor([2, -3]).to(dtype)
    with pytest.raises(NotImplementedError, match="nms_kernel"):
        torch.ops.fallback_test.count(values.to(DEVICE))
    assert calls == [dtype]
    assert_same(torch.ops.fallback_test.count(values.to(DEVICE).float()), values.float() * 2)


@needs(torch.float16, torch.int64)
def test_dtypes_that_cuda_does_not_support_raise_an_error() -> None:
    integers = torch.arange(4, device=DEVICE)
    for use in (
        lambda: functional.gelu(integers),
        lambda: torch.lerp(integers, integers, 0.5),
        lambda: torch.linalg.inv(torch.eye(2, dtype=torch.float16, device=DEVICE)),
        lambda: torch.special.bessel_j0(torch.ones(2, device=DEVICE), out=integers),
    ):
        with pytest.raises(RuntimeError):
            use()


def test_the_table_of_operators_fits_their_schemas() -> None:
    """The table of csrc/fallback/traits.h."""
    result = run_python(
        f"""
        import torch
        from {backend.__name__} import _C
        for name, takes_cpu_tensors, writes, cpu_result in _C.fallback_traits():
            schemas = [s for s in torch._C._jit_get_all_schemas() if s.name == name]
            schemas = [s for s in schemas if "Tensor" in str(s)]  # TorchScript has others
            assert schemas, f"there is no operator {{name}}"
            for schema in schemas:
                arguments = {{argument.name: argument for argument in schema.arguments}}
                tensors = [n for n, argument in arguments.items() if "Tensor" in str(argument.type)]
                if takes_cpu_tensors:
                    assert len(tensors) > 1 or "Tensor?[]" in str(schema), schema
                for argument in filter(None, writes):
                    assert argument in tensors, schema
                    assert not arguments[argument].is_write, schema
                if cpu_result >= 0:
                    assert "Tensor" in str(schema.returns[cpu_result].type), schema
            assert takes_cpu_tensors or any(writes) or cpu_result >= 0, name
        print("checked")
        """
    )
    assert "checked" in result.stdout


NOT_FOR_UNSIGNED: dict[str, Callable[[torch.Tensor], Any]] = {
    "addcmul": lambda x: torch.addcmul(x, x, x),
    "addcdiv": lambda x: torch.addcdiv(x, x, x),
    "lerp, a number": lambda x: torch.lerp(x, x, 1),
    "lerp": lambda x: torch.lerp(x, x, x),
    "addmm": lambda x: torch.addmm(x, x, x),
    "threshold": lambda x: torch.threshold(x, 1, 2),
    "leaky_relu": functional.leaky_relu,
    "scatter_add": lambda x: x.scatter_add(0, torch.zeros_like(x, dtype=torch.int64), x),
    "index_add": lambda x: x.index_add(0, torch.zeros(2, dtype=torch.int64, device=x.device), x),
    "embedding": lambda x: functional.embedding_bag(torch.zeros_like(x, dtype=torch.int64), x),
}


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
@pytest.mark.parametrize("name", NOT_FOR_UNSIGNED)
def test_unsigned_dtypes_raise_as_on_the_cpu(name: str, dtype: torch.dtype) -> None:
    """Either both have a kernel, or neither does, without an assertion that asks for a report."""
    values = torch.ones(2, 2, dtype=dtype)
    try:
        expected = NOT_FOR_UNSIGNED[name](values)
    except (RuntimeError, TypeError):
        with pytest.raises((RuntimeError, TypeError)) as caught:
            NOT_FOR_UNSIGNED[name](values.to(DEVICE))
        assert "INTERNAL ASSERT" not in str(caught.value)
    else:
        assert_same(NOT_FOR_UNSIGNED[name](values.to(DEVICE)), expected)


AVERAGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "avg_pool2d": lambda x: functional.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(x, 2),
    "nll_loss": lambda x: functional.nll_loss(x[0], torch.zeros(4, dtype=torch.int64).to(x.device)),
}


@needs(torch.int32)
@pytest.mark.parametrize("name", AVERAGES)
def test_averages_of_integers_are_refused_as_on_the_cpu(name: str) -> None:
    for device in ("cpu", DEVICE):
        with pytest.raises(NotImplementedError, match=f'"{name}.*" not implemented for'):
            AVERAGES[name](torch.ones(1, 4, 4, dtype=torch.int32, device=device))
