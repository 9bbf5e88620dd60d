"""The effect of autocast on each operator: the dtype and the value of the result."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from amp.autocast_cases import (
    BANNED,
    FLOAT32,
    FLOAT32_APPENDED,
    FLOAT32_RESULT,
    LOWER_PRECISION,
    LOWER_PRECISION_WITHOUT_CPU_KERNEL,
    PROMOTE,
    Case,
    Maker,
    operator,
)
from backend import DEVICE, backend
from support import needs
from torch.utils._python_dispatch import TorchDispatchMode

LOWER = backend.get_amp_supported_dtype()
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 6e-2, torch.float32: 1e-4}

pytestmark = [
    needs(torch.float32, torch.int64),
    pytest.mark.skipif(not LOWER, reason="generated without a 16-bit floating-point dtype"),
]

every_dtype = pytest.mark.parametrize("lower", LOWER, ids=str)


def registered(key: str) -> set[str]:
    """Return the names of the operators with a kernel for a dispatch key."""
    return {
        name.removeprefix("aten::")
        for name in torch._C._dispatch_get_all_op_names()
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
    }


LISTED = registered("AutocastXPU")
"""The installed PyTorch's lists, which its own accelerators use. They grow."""


def cases(table: dict[str, Case]) -> pytest.MarkDecorator:
    listed = {name: case for name, case in table.items() if name in LISTED}
    return pytest.mark.parametrize(("name", "case"), listed.items(), ids=list(listed))


def as_tuple(result: Any) -> tuple[torch.Tensor, ...]:
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)


def check(name: str, case: Case, lower: torch.dtype, given: Any, result_dtype: torch.dtype) -> None:
    """Compare with the CPU, which computes in float32 from the same values."""
    expected = as_tuple(operator(name)(*case(Maker("cpu", lower, torch.float32))))
    arguments = case(Maker(DEVICE, lower, given))
    with torch.autocast(DEVICE, dtype=lower):
        actual = as_tuple(operator(name)(*arguments))
    assert [result.dtype for result in actual] == [result_dtype] * len(actual)
    tolerance = TOLERANCE[result_dtype]
    for one, other in zip(actual, expected, strict=True):
        assert one.device.type == DEVICE
        torch.testing.assert_close(one.cpu().float(), other, rtol=tolerance, atol=tolerance)


@every_dtype
@cases(LOWER_PRECISION)
def test_runs_in_the_autocast_dtype(name: str, case: Case, lower: torch.dtype) -> None:
    check(name, case, lower, torch.float32, lower)


@every_dtype
@cases(FLOAT32)
def test_runs_in_float32(name: str, case: Case, lower: torch.dtype) -> None:
    check(name, case, lower, lower, torch.float32)


@every_dtype
@cases(FLOAT32_RESULT | FLOAT32_APPENDED)
def test_returns_float32(name: str, case: Case, lower: torch.dtype) -> None:
    check(name, case, lower, lower, torch.float32)


@cases(FLOAT32_RESULT)
def test_keeps_the_requested_dtype(name: str, case: Case) -> None:
    arguments = case(Maker(DEVICE, LOWER[0], LOWER[0]))
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        result = operator(name)(*arguments, dtype=LOWER[0])
    assert result.dtype is LOWER[0]


@every_dtype
@cases(PROMOTE)
def test_runs_in_float32_if_one_argument_is_float32(
    name: str, case: Case, lower: torch.dtype
) -> None:
    check(name, case, lower, [torch.float32, lower], torch.float32)
    check(name, case, lower, [lower, torch.float32], torch.float32)


@every_dtype
@cases(PROMOTE)
def test_stays_in_the_autocast_dtype_if_all_arguments_are(
    name: str, case: Case, lower: torch.dtype
) -> None:
    check(name, case, lower, lower, lower)


class ReachedError(Exception):
    """Carries the dtypes of the arguments with which an operator was reached."""


class Stop(TorchDispatchMode):
    """Runs casts, and raises at the first other operator that is called below autocast."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten._to_copy.default:
            return func(*args, **(kwargs or {}))
        dtypes = {arg.dtype for arg in args if isinstance(arg, torch.Tensor)}
        raise ReachedError(func._schema.name, dtypes)


@every_dtype
@cases(LOWER_PRECISION_WITHOUT_CPU_KERNEL)
def test_gets_its_arguments_in_the_autocast_dtype(
    name: str, case: Case, lower: torch.dtype
) -> None:
    arguments = case(Maker(DEVICE, lower, torch.float32))
    with torch.autocast(DEVICE, dtype=lower), Stop(), pytest.raises(ReachedError) as reached:
        operator(name)(*arguments)
    assert reached.value.args == (f"aten::{name}", {lower})


def test_every_operator_of_pytorchs_lists_is_covered() -> None:
    tables = (
        LOWER_PRECISION,
        LOWER_PRECISION_WITHOUT_CPU_KERNEL,
        FLOAT32,
        FLOAT32_RESULT,
        FLOAT32_APPENDED,
        PROMOTE,
    )
    covered = {name for table in tables for name in table} | set(BANNED)
    assert registered("AutocastPrivateUse1") == LISTED
    # Overloads with names of dimensions, which PyTorch removed in 2.13, equal those with numbers.
    assert covered >= {name for name in LISTED if "imname" not in name and "names" not in name}


def test_binary_cross_entropy_is_refused_with_pytorchs_advice() -> None:
    probability = torch.full((3,), 0.5, device=DEVICE)
    with (
        torch.autocast(DEVICE, dtype=LOWER[0]),
        pytest.raises(RuntimeError, match="are unsafe to autocast") as error,
    ):
        torch.nn.functional.binary_cross_entropy(probability, probability)
    assert "binary_cross_entropy_with_logits" in str(error.value)
    torch.nn.functional.binary_cross_entropy(probability, probability)


def test_unlisted_operators_keep_their_dtype() -> None:
    one = torch.ones(3, device=DEVICE)
    other = one.to(LOWER[0])
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        assert (one * one).dtype is torch.float32
        assert torch.relu(other).dtype is LOWER[0]
        assert (one + other).dtype is torch.float32


@needs(torch.float64)
def test_float64_is_not_cast() -> None:
    matrix = torch.eye(3, dtype=torch.float64, device=DEVICE)
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        assert torch.mm(matrix, matrix).dtype is torch.float64
        assert torch.exp(matrix).dtype is torch.float64
        assert matrix.sum().dtype is torch.float64


def test_integers_are_not_cast() -> None:
    numbers = torch.arange(4, device=DEVICE)
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        assert numbers.sum().dtype is torch.int64
        assert torch.cumsum(numbers, 0).dtype is torch.int64


def test_cpu_tensors_are_not_cast() -> None:
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        assert torch.mm(torch.eye(2), torch.eye(2)).dtype is torch.float32


def test_in_place_and_out_variants_are_not_cast() -> None:
    matrix = torch.eye(3, device=DEVICE)
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        result = torch.empty(3, 3, device=DEVICE)
        assert torch.mm(matrix, matrix, out=result).dtype is torch.float32
        assert matrix.clone().addmm_(matrix, matrix).dtype is torch.float32
        assert matrix.clone().exp_().dtype is torch.float32
