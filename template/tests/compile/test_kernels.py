"""Generated kernels, compared with eager operators of the CPU."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, PACKAGE, backend
from support import (
    FLOATING,
    INTEGERS,
    computed_dtypes,
    has_function,
    needs,
    needs_two_devices,
    reports_errors,
    run_python,
)
from torch import Tensor
from torch._inductor.utils import run_and_get_code

pytestmark = pytest.mark.skipif(
    not has_function("modules", "load_module") or torch.__version__ < "2.13",
    reason="the device library takes no kernels, or Inductor is too old to write them",
)
Function = Callable[..., Any]


def elementwise(x: Tensor, y: Tensor) -> Any:
    """Twenty operators."""
    z = torch.sigmoid(x) * torch.tanh(y) + torch.exp(-x.abs()) - torch.log1p(y.square())
    z = torch.where(z > 0, z.sqrt(), z.erf()).clamp(-0.5, 0.8) + torch.sign(x) * y.floor()
    return (
        torch.maximum(z, x) - torch.fmod(y, 0.3).neg(),
        (x > y) & (z < 1),
        x.round().to(torch.int8),
    )


def norms(x: Tensor, y: Tensor) -> Any:
    """Statistics of rows and of columns."""
    weight = torch.arange(x.shape[-1], device=x.device).to(x.dtype) * 0.1
    rows = torch.nn.functional.layer_norm(x, x.shape[-1:], weight) + y
    return torch.nn.functional.gelu(rows), rows.var(0), x.mean(-1), (x * y).std(), y.norm(dim=0)


def softmaxes(x: Tensor, y: Tensor) -> Any:
    """Several reductions of a row in sequence."""
    return x.softmax(-1), (x + y).log_softmax(0), torch.logsumexp(x.flatten(), 0)


def reductions(x: Tensor, y: Tensor) -> Any:
    """Each kind of reduction."""
    small = (x * 2).round()
    return (
        x.sum(),
        x.sum(0),
        (y * 0.2 + 1).prod(-1),
        small.max(1),
        small.min(0),
        small.argmax(),
        y.amin((0, 1)),
        (x > 2).any(-1),
        (x > -2).all(0),
        small.to(torch.int32).sum(-1),
        torch.where(x > 1.5, torch.nan, x).argmax(-1),
    )


def index_operators(x: Tensor, y: Tensor) -> Any:
    """Concatenation, padding, flips and indexing."""
    chosen = torch.arange(x.shape[0], device=x.device).flip(0)
    padded = torch.nn.functional.pad(x, (1, 2, 3, 0), value=0.5)
    return (
        torch.cat([x, y * 2, x[:, :3].repeat(1, 2)], 1),
        padded * 2,
        x[chosen] + y,
        y.gather(0, chosen[:, None].expand_as(y)) - x,
        torch.roll(x, 2, 1) + y.t().contiguous().t(),
        torch.tril(x) + torch.arange(y.shape[1], device=y.device),
        torch.zeros_like(x).index_put((chosen,), y),
    )


COMPUTED = computed_dtypes()
WHOLE = [each for each in INTEGERS if each in COMPUTED]
FUNCTIONS: list[Function] = [elementwise, norms, softmaxes, reductions, index_operators]


def assert_compiled(
    function: Function, *inputs: Any, tolerance: float = 2e-5, **options: Any
) -> list[str]:
    """Compare a compiled function with eager operators of the CPU. Return its code."""
    torch._dynamo.reset()
    held = [each.to(DEVICE) if isinstance(each, Tensor) else each for each in inputs]
    result, code = run_and_get_code(torch.compile(function, **options), *held)
    actual = torch.utils._pytree.tree_map_only(Tensor, lambda each: each.cpu(), result)
    torch.testing.assert_close(
        actual, function(*inputs), rtol=tolerance, atol=tolerance, equal_nan=True
    )
    assert any("define_kernel(" in each for each in code), code
    return code


@pytest.mark.parametrize("size", [(33, 70), (5, 4), (2, 1000)], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_functions_equal_eager_functions(
    function: Function, size: tuple[int, int]
) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(size, generator=generator) for _ in range(2))
    assert_compiled(function, x, y)


@pytest.mark.parametrize("dtype", [each for each in FLOATING[1:] if each in COMPUTED])
@pytest.mark.parametrize("function", [elementwise, norms, softmaxes])
def test_other_floating_point_dtypes_equal_eager(function: Function, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.rand(9, 33, generator=generator, dtype=torch.float64) + 0.2 for _ in range(2))
    tolerance = {torch.float16: 1e-2, torch.bfloat16: 8e-2}.get(dtype, 1e-6)
    assert_compiled(function, x.to(dtype), y.to(dtype), tolerance=tolerance)


@pytest.mark.parametrize("dtype", WHOLE)
def test_integer_operators_equal_eager(dtype: torch.dtype) -> None:
    def function(x: Tensor, y: Tensor) -> Any:
        shifted = (x << (y & 3), x >> (y & 3), ~x ^ y)
        divided = (x // y, x % y, torch.div(x, y, rounding_mode="trunc"), x / y)
        return x + y, x * y - 3, *shifted, *divided, x.abs(), x.max(), (x == y).sum()

    x = torch.arange(-20, 30).to(dtype)
    y = torch.arange(1, 51).to(dtype)
    assert_compiled(function, x, y)


@pytest.mark.parametrize("dtype", [each for each in WHOLE if each.is_signed])
def test_integer_overflow_wraps_around(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)

    def function(x: Tensor) -> Any:
        return (
            x + 1 > x,
            x - 3 < x,
            x * x,
            -x,
            x.abs(),
            (x * x).cumsum(0)[-1],
            (x * 3).prod(),
            x.sum(),
        )

    values = torch.tensor([limits.max, limits.min, limits.max, 5, -7] * 4, dtype=dtype)
    assert_compiled(function, values)


def test_shifts_by_more_than_the_bits_of_the_dtype() -> None:
    for dtype in WHOLE:
        x = torch.tensor([-100, -1, 100, 7]).to(dtype)
        by = torch.tensor([40, 8, 31, 0]).to(dtype)
        assert_compiled(lambda x, y: (x >> y, x << y), x, by)


@pytest.mark.parametrize("dynamic", [False, True])
def test_numbers_computed_from_indices_and_sizes(dynamic: bool) -> None:
    """Quotients of either sign round down. Numbers made of sizes are as exact as in Python."""

    def function(x: Tensor) -> Any:
        size = x.shape[0]
        place = torch.arange(size, device=x.device)
        return (
            (place - 5) // 3,
            (2 * place - 7) % 4,
            (place - size) // 4,
            x * (size / 3),
            x + (place - size // 2) // 2,
        )

    dtype = torch.float64 if torch.float64 in COMPUTED else torch.float32
    x = torch.arange(11).to(dtype)
    assert_compiled(
        function, x, dynamic=dynamic, tolerance=1e-12 if dtype is torch.float64 else 1e-6
    )


def test_conversions_of_all_16_bit_values_are_exact() -> None:
    bits = torch.arange(-(2**15), 2**15).to(torch.int16)
    for dtype in {torch.float16, torch.bfloat16}.intersection(COMPUTED):
        x = bits.view(dtype)
        assert_compiled(lambda x: (x.float() * 1, x * 1), x, tolerance=0)
        near = x.float().nan_to_num() * (1 + 2**-10)
        assert_compiled(lambda x, dtype=dtype: x.to(dtype) * 1, near, tolerance=0)


def test_dynamic_sizes_equal_eager() -> None:
    compiled = torch.compile(softmaxes, dynamic=True)
    for size in ((3, 4), (70, 9), (2, 900), (1, 1)):
        x, y = torch.randn(size), torch.randn(size)
        actual = compiled(x.to(DEVICE), y.to(DEVICE))
        torch.testing.assert_close([each.cpu() for each in actual], list(softmaxes(x, y)))
    empty = torch.compile(lambda x: x.sin() + 1, dynamic=True)
    for length in (3, 0):
        assert empty(torch.ones(length, device=DEVICE)).shape == (length,)


def test_cpu_scalars_and_changing_numbers_equal_eager() -> None:
    """Zero-dimensional CPU tensors, and numbers that change between calls."""
    number = torch.tensor(2.5, dtype=torch.float64)
    x = torch.randn(5)
    compiled = torch.compile(lambda x, n, f: (x * n).sin() * f, dynamic=True)
    for factor in (0.5, 1.5, 7.25):
        actual = compiled(x.to(DEVICE), number, factor)
        torch.testing.assert_close(actual.cpu(), (x * number).sin() * factor)


def test_gradients_equal_eager() -> None:
    x, y = torch.randn(9, 33), torch.randn(9, 33)
    gradients = []
    for device in ("cpu", DEVICE):
        leaves = [each.detach().to(device).requires_grad_() for each in (x, y)]
        function = norms if device == "cpu" else torch.compile(norms)
        sum(each.square().sum() for each in function(*leaves)).backward()
        gradients.append([each.grad.cpu() for each in leaves if each.grad is not None])
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-3, atol=1e-4)


def test_operators_are_fused_into_one_kernel() -> None:
    """There is one kernel for elementwise operators, and one for a norm with its neighbours."""
    x, y = torch.randn(64, 256), torch.randn(64, 256)
    for function in (elementwise, lambda x, y: torch.relu(x.softmax(-1) + y) * 2):
        code = assert_compiled(function, x, y)
        assert sum(each.count(" = define_kernel(") for each in code) == 1


def test_a_kernel_of_many_operators_has_a_valid_file_name() -> None:
    """The full name of the kernel is too long for a file name."""

    def function(x: Tensor, y: Tensor) -> Tensor:
        for name in (
            "logical_not",
            "binary_cross_entropy_with_logits",
            "hardswish",
            "smooth_l1_loss",
        ):
            part = getattr(torch, name, None) or getattr(torch.nn.functional, name)
            x = x + (part(x, y) if name.endswith(("loss", "logits")) else part(x))
        x = torch.nn.functional.softplus(x).log1p() + torch.nn.functional.elu(y)
        return torch.nn.functional.huber_loss(x, y) + torch.nn.functional.soft_margin_loss(x, y)

    assert_compiled(function, torch.rand(5, 7), torch.rand(5, 7))


@reports_errors
def test_an_index_out_of_bounds_raises() -> None:
    x = torch.randn(4, device=DEVICE)
    wrong = torch.tensor([0, 4], device=DEVICE)
    with pytest.raises(RuntimeError, match="index 4 is out of bounds for a dimension of size 4"):
        torch.compile(lambda x, i: x[i] * 2 + 1)(x, wrong).cpu()


@reports_errors
def test_an_integer_division_by_zero_raises() -> None:
    x = torch.ones(3, dtype=torch.int32, device=DEVICE)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.compile(lambda x: (x + 1) // (x - 1))(x).cpu()


def test_kernels_run_on_the_current_stream() -> None:
    function = torch.compile(lambda x: x.sin() * 2 + 1)
    x = torch.randn(1000)
    stream = torch.Stream(DEVICE)
    with stream:
        held = x.to(DEVICE, non_blocking=True)
        result = function(held)
    stream.synchronize()
    torch.testing.assert_close(result.cpu(), x.sin() * 2 + 1)


@needs_two_devices
def test_kernels_run_on_a_second_device() -> None:
    function = torch.compile(lambda x: x.sin() * 2 + 1)
    x = torch.randn(10)
    for number in range(2):
        torch.testing.assert_close(function(x.to(f"{DEVICE}:{number}")).cpu(), x.sin() * 2 + 1)


@pytest.mark.full
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    code = f"""
import torch
x = torch.randn(50, device="{DEVICE}")
torch.testing.assert_close(torch.compile(lambda x: x.sin() * 2.5 + x)(x), x.sin() * 2.5 + x)
"""
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    run_python(code, environment)
    kept = sorted(tmp_path.rglob("*.so"))
    # A compiler of the same name that prints its version, and fails on each source.
    compiler = tmp_path / "c++"
    compiler.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec {shutil.which("c++")} "$@"\nexit 1\n'
    )
    compiler.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    run_python(code, environment | {"PATH": path})
    assert sorted(tmp_path.rglob("*.so")) == kept


def test_operators_are_called_without_a_host_compiler() -> None:
    run_python(
        f"""
import torch
from torch._inductor.utils import run_and_get_code
x = torch.randn(5, device="{DEVICE}")
result, code = run_and_get_code(torch.compile(lambda x: x.sin() + 1), x)
torch.testing.assert_close(result, x.sin() + 1)
assert ("define_kernel(" in code[0]) == (torch.{DEVICE}.kernel_format() != "elf-host")
""",
        {"CXX": "no-such-compiler"},
    )


@pytest.mark.parametrize("order", ["first", "last"])
def test_inductor_can_be_imported_before_or_after_the_backend(order: str) -> None:
    """PyTorch may read its registry of devices only once, when it is imported."""
    imports = ["import torch._inductor.utils, torch._inductor.compile_fx", f"import {PACKAGE}"]
    text = "\n".join(imports if order == "first" else reversed(imports))
    run_python(
        f"""
import torch
{text}
from torch._dynamo.device_interface import get_interface_for_device
from torch._inductor.utils import run_and_get_code
x = torch.randn(5, 7, device="{DEVICE}", requires_grad=True)
result, code = run_and_get_code(torch.compile(lambda x: x.sin() * 3 + 1), x)
torch.testing.assert_close(result, x.sin() * 3 + 1)
result.sum().backward()
torch.testing.assert_close(x.grad, 3 * x.detach().cos())
assert "define_kernel(" in code[0]
interface = get_interface_for_device("{DEVICE}")
assert interface.Worker.get_device_properties().multi_processor_count >= 1
assert getattr(interface, "exposes_streams", lambda: True)()
assert getattr(interface, "get_multi_processor_count", lambda: 1)() >= 1
""",
        {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    )


@needs(torch.bfloat16)
def test_autocast_equals_eager() -> None:
    if not torch.amp.is_autocast_available(DEVICE):
        pytest.skip("the backend was generated without autocast")
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16))
    x = torch.randn(4, 8)
    held = model.to(DEVICE)
    with torch.autocast(DEVICE, torch.bfloat16):
        expected = held(x.to(DEVICE))
        actual = torch.compile(held)(x.to(DEVICE))
    torch.testing.assert_close(actual, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.skipif(
    not has_function("modules", "load_module") or backend.kernel_format() != "opencl-c",
    reason="the device's language has no work items",
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_kernels_with_work_items_equal_eager(
    function: Function, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Kernels for a GPU give correct results on a CPU too, although loops are faster there."""
    dialect = importlib.import_module(f"{backend.__name__}.compiler.kernels._opencl")
    monkeypatch.setattr(dialect, "_is_cpu", lambda: False)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    code = assert_compiled(function, torch.randn(33, 70), torch.randn(33, 70))
    assert any("get_local_id" in each for each in code)


@pytest.mark.full
@pytest.mark.parametrize("name", ["kernels", "operators"])
def test_the_environment_variable_selects_the_compiler(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{ENV_PREFIX}_COMPILER", name)
    torch._dynamo.reset()
    _, code = run_and_get_code(torch.compile(lambda x: x.sin() + 1), torch.randn(3, device=DEVICE))
    assert ("define_kernel(" in code[0]) == (name == "kernels")
