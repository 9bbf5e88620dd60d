"""Operators without a kernel: they run on the CPU, which callers must not notice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import (
    assert_same,
    fallbacks,
    needs,
    reports_errors,
    run_python,
    sample,
)

pytestmark = needs(torch.float32)

# Operators that no family of the device API covers.
bessel = torch.special.bessel_j0
zeta = torch.special.zeta


def test_zero_dimensional_cpu_tensor_first_leaves_the_result_on_the_device() -> None:
    """pytorch#187148 reports a CPU result for other backends."""
    scalar, values = torch.tensor(2.5), sample(4, low=1)
    for function in (
        lambda x: zeta(scalar, x),
        lambda x: torch.where(torch.tensor(True), scalar, x),
        lambda x: torch.where(torch.tensor(True), x, x),
        lambda x: torch.logical_and(scalar, x),
        lambda x: scalar // x,
        lambda x: 2 // x,
        lambda x: torch.hypot(scalar, x),
        lambda x: torch.xlogy(scalar, x),
    ):
        assert_same(function(values.to(DEVICE)), function(values))


def test_cpu_tensor_with_dimensions_is_refused() -> None:
    on_device, on_cpu = torch.ones(2, device=DEVICE), torch.ones(2)
    for use in (
        lambda: zeta(on_device, on_cpu),
        lambda: zeta(on_cpu, on_device),
        lambda: torch.gather(on_device, 0, torch.zeros(2, dtype=torch.int64)),
        lambda: torch.nn.functional.embedding(
            torch.zeros(2, dtype=torch.int64), torch.ones(2, 2, device=DEVICE)
        ),
        lambda: torch.cat([on_device, on_cpu]),
        lambda: torch.linalg.solve(torch.eye(2, device=DEVICE), on_cpu),
        lambda: torch.igamma(on_device, on_cpu),
    ):
        with pytest.raises(RuntimeError, match=r"(?i)device"):
            use()


def test_a_fallback_waits_for_queued_work() -> None:
    value = torch.zeros(2000, device=DEVICE)
    for _ in range(50):
        value += 1
    assert_same(bessel(value), bessel(torch.full((2000,), 50.0)))
    stream = backend.Stream()
    stream.wait_stream(backend.current_stream())
    with backend.stream(stream):
        value += 1
        assert_same(bessel(value), bessel(torch.full((2000,), 51.0)))


@reports_errors
@needs(torch.int64)
@pytest.mark.parametrize("address", ["0", "1"])
def test_a_fallback_raises_the_failure_of_its_inputs(address: str) -> None:
    result = run_python(
        f"""
        import torch
        values = torch.ones(4, device="{DEVICE}")
        try:
            values[torch.tensor([9], device="{DEVICE}")]
            torch.special.bessel_j0(values)
        except (IndexError, RuntimeError):
            print("raised")
            torch.{DEVICE}.acknowledge_failure()
        """,
        {f"{ENV_PREFIX}_SIMULATOR_HOST_ADDRESS": address},
    )
    assert "raised" in result.stdout


@needs(torch.complex64, torch.int32)
@pytest.mark.parametrize("address", ["0", "1"])
@pytest.mark.parametrize("bit", ["conj", "neg"])
def test_conjugate_and_negative_cpu_results_are_resolved(bit: str, address: str) -> None:
    run_python(
        f"""
        import torch
        with torch.library._scoped_library("lazy_test", "FRAGMENT") as library:
            library.define("make(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")

            def make(x, *, out):
                out.copy_(x)
                torch._C._set_{bit}(out, True)
                return out

            library.impl("make", make, "CPU")
            x = torch.tensor([1 + 2j, 3 - 4j])
            wanted = torch.ops.lazy_test.make(x, out=torch.empty_like(x))
            x = x.to("{DEVICE}")
            result = torch.ops.lazy_test.make(x, out=torch.empty_like(x))
            torch.testing.assert_close(result.cpu(), wanted.clone(), rtol=0, atol=0)
        """,
        {f"{ENV_PREFIX}_SIMULATOR_HOST_ADDRESS": address},
    )


def test_view_without_a_kernel_aliases_or_raises(library: torch.library.Library) -> None:
    library.define("first_row(Tensor(a) x) -> Tensor(a)")
    library.impl("first_row", lambda x: x.as_strided((2,), (1,)), "CPU")
    base = torch.zeros(3, 2, device=DEVICE)
    try:
        view = torch.ops.fallback_test.first_row(base)
    except RuntimeError as error:
        assert "first_row" in str(error)
        return
    view.fill_(5)
    assert base[0].eq(5).all().item()


def test_custom_operator_runs_and_mutates(library: torch.library.Library) -> None:
    library.define("double(Tensor x) -> Tensor")
    library.impl("double", lambda x: x * 2, "CPU")
    library.define("triple_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("triple_", lambda x: x.mul_(3), "CPU")
    value = torch.ones(3, device=DEVICE)
    assert_same(torch.ops.fallback_test.double(value), torch.full((3,), 2.0))
    assert torch.ops.fallback_test.triple_(value).data_ptr() == value.data_ptr()
    assert_same(value, torch.full((3,), 3.0))
    assert fallbacks("fallback_test::double") == 1


def test_only_zero_dimensional_cpu_tensors_are_accepted(
    library: torch.library.Library,
) -> None:
    library.define("sum(Tensor x, Tensor y) -> Tensor")
    library.impl("sum", lambda x, y: x + y, "CPU")
    there, here = torch.ones(2, device=DEVICE), torch.ones(2)
    assert_same(torch.ops.fallback_test.sum(there, torch.tensor(2.0)), torch.full((2,), 3.0))
    for pair in ((there, here), (here, there)):
        with pytest.raises(RuntimeError, match="two devices"):
            torch.ops.fallback_test.sum(*pair)


def test_an_output_that_overlaps_an_input_is_refused(library: torch.library.Library) -> None:
    """The CPU runs on copies, which do not overlap."""
    library.define("shift(Tensor x, Tensor(a!) out) -> ()")

    def shift(x: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(x)

    library.impl("shift", shift, "CPU")
    for device in ("cpu", DEVICE):
        values = torch.ones(4, device=device)
        for write in (
            lambda x, out: torch.special.i0e(x, out=out),
            lambda x, out: torch.ops.fallback_test.shift(x, out),
        ):
            with pytest.raises(RuntimeError, match="refer to a single memory location"):
                write(values[1:], values[:-1])
            write(values, values)


def test_from_file_on_the_device_raises(tmp_path: Path) -> None:
    file = tmp_path / "values"
    file.write_bytes(bytes(16))
    with pytest.raises(NotImplementedError, match=r"leave out device=, and copy the result"):
        torch.from_file(str(file), shared=True, size=4, device=DEVICE)
    values = torch.from_file(str(file), shared=True, size=4)
    values.copy_(torch.ones(4, device=DEVICE))
    assert file.read_bytes() == bytes([0, 0, 128, 63] * 4)


def test_results_without_elements_have_their_shape() -> None:
    """pytorch#165549 reports a result of shape [0] for other backends."""
    for shape in ((3, 4), (), (0,), (2, 0, 3)):
        values = sample(*shape)
        for function in (torch.abs, torch.digamma, bessel, torch.special.entr):
            result = function(values.to(DEVICE))
            assert result.shape == values.shape
            assert_same(result, function(values))


@needs(torch.float32)
def test_fused_steps_of_tensors_in_different_orders() -> None:
    """The CPU's fused kernels assume equal strides of a parameter, its gradient and its state."""
    values, grad, state = sample(4, 6), sample(4, 6, seed=1), sample(1, 6, seed=2)
    parameter = values.T.contiguous().to(DEVICE).T
    torch._fused_sgd_(
        [parameter],
        [grad.to(DEVICE)],
        [state.to(DEVICE).expand(4, 6)],  # which the family declines
        weight_decay=0.0,
        momentum=0.9,
        lr=0.1,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    )
    assert fallbacks("_fused_sgd_") == 1
    assert_same(parameter, values - 0.1 * (0.9 * state + grad), rtol=1e-5, atol=1e-6)


def sobol(x: torch.Tensor) -> list[torch.Tensor]:
    state = torch.zeros(4, 30, dtype=torch.int64, device=x.device)
    torch._sobol_engine_initialize_state_(state, 4)
    quasi = torch.zeros(4, dtype=torch.int64, device=x.device)
    drawn, quasi = torch._sobol_engine_draw(quasi, 3, state, 4, 0, torch.float32)
    torch._sobol_engine_ff_(quasi, 2, state, 4, 3)
    return [drawn, quasi, state]


READ_BY_THE_HOST: dict[str, Callable[[torch.Tensor], Any]] = {
    "choose_qparams_optimized": lambda x: list(torch.choose_qparams_optimized(x, 16, 200, 0.16, 8)),
    "reshape": lambda x: [
        torch.ops.aten._reshape_from_tensor(x, torch.tensor([8, 2], device=x.device))
    ],
    "saturate": lambda x: [torch._saturate_weight_to_fp16(x * 1e6)],
    "sobol": sobol,
    "range": lambda x: [torch.ops.aten.range.out_(0, 4, out=torch.empty(5, device=x.device))],
}


@needs(torch.int64)
@pytest.mark.parametrize("name", READ_BY_THE_HOST)
def test_composites_that_access_memory_on_the_host(name: str) -> None:
    values = sample(4, 4)
    results = [READ_BY_THE_HOST[name](values.to(device)) for device in ("cpu", DEVICE)]
    for expected, actual in zip(*results, strict=True):
        assert_same(actual, expected)


def test_weights_are_packed_for_the_cpu_only() -> None:
    with pytest.raises(NotImplementedError, match="packs weights for the CPU only"):
        torch.fbgemm_pack_gemm_matrix_fp16(torch.ones(4, 4, device=DEVICE))
