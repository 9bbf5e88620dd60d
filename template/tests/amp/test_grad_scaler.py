"""``torch.amp.GradScaler`` on the device, with the CPU's as the oracle."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import (
    FLOATING,
    assert_same,
    may_fall_back,
    needs,
    needs_two_devices,
    sample,
    supported,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

pytestmark = needs(torch.float32, torch.int32)

Layout = Callable[[torch.Tensor], torch.Tensor]
LAYOUTS: dict[str, Layout] = {
    "contiguous": lambda base: base,
    "transposed": lambda base: base.t(),
    "stepped": lambda base: base[::2, 1::3],
    "offset": lambda base: base[1:],
    "one element": lambda base: base[2, 3],
    "no element": lambda base: base[:0],
}
AMP_OPERATORS = ("aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_update_scale_")


def unscale(gradients: list[torch.Tensor], inverse_scale: float, found: float = 0) -> torch.Tensor:
    """Unscale in place and return found_inf."""
    device = gradients[0].device
    found_inf = torch.full((1,), found, dtype=torch.float32, device=device)
    factor = torch.full((1,), inverse_scale, device=device)
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, factor)
    return found_inf


@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_unscale_multiplies_only_the_gradient(layout: Layout, dtype: torch.dtype) -> None:
    base = sample(6, 8, dtype=dtype)
    ours = base.to(DEVICE)
    assert unscale([layout(ours)], 0.25).item() == 0
    assert unscale([layout(base)], 0.25).item() == 0
    assert_same(ours, base)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
@pytest.mark.parametrize("place", [0, 40, -1])
def test_unscale_finds_nonfinite_gradients(value: float, dtype: torch.dtype, place: int) -> None:
    first, second = sample(5, dtype=dtype).to(DEVICE), sample(9, 9, dtype=dtype)
    second.view(-1)[place] = value
    assert unscale([first, second.to(DEVICE)], 1.0).item() == 1
    assert unscale([first, second.to(DEVICE).t()], 0.5).item() == 1


@needs(torch.float16, torch.float64)
def test_unscale_takes_several_dtypes_at_once() -> None:
    gradients = [sample(4, dtype=dtype, seed=3) for dtype in (torch.float16, torch.float64)]
    ours = [gradient.to(DEVICE) for gradient in gradients]
    unscale(ours, 0.5)
    for one, other in zip(ours, gradients, strict=True):
        assert_same(one, other * 0.5)


def test_unscale_of_no_gradients_does_nothing() -> None:
    found_inf, factor = torch.zeros(1, device=DEVICE), torch.ones(1, device=DEVICE)
    torch._amp_foreach_non_finite_check_and_unscale_([], found_inf, factor)
    assert found_inf.item() == 0


def test_unscale_takes_more_dimensions_than_kernels_do() -> None:
    gradient = sample(*[2] * 2, *[1] * 18)
    ours = gradient.to(DEVICE)
    unscale([ours], 0.5)
    assert_same(ours, gradient * 0.5)


@needs(torch.complex64)
def test_unscale_refuses_a_negated_view_as_on_the_cpu() -> None:
    for device in ("cpu", DEVICE):
        number = sample(4, dtype=torch.complex64).to(device)
        with pytest.raises(RuntimeError, match="Please materialize all the negation input"):
            unscale([number.conj().imag], 0.5)


@needs_two_devices
def test_unscale_runs_on_a_device_that_is_not_current() -> None:
    gradient = torch.full((3,), 8.0, device=f"{DEVICE}:1")
    found_inf = unscale([gradient], 0.25)
    assert found_inf.device == gradient.device
    assert gradient.tolist() == [2, 2, 2]


def test_unscale_refuses_a_gradient_that_overlaps_itself() -> None:
    gradient = torch.ones(1, device=DEVICE).expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        unscale([gradient], 1.0)


@pytest.mark.parametrize(
    ("found_inf", "inverse_scale", "message"),
    [
        (torch.zeros(2), torch.ones(1), "found_inf must be a 1-element tensor."),
        (torch.zeros(1), torch.ones(2), "inv_scale must be a 1-element tensor."),
        (torch.zeros(1, dtype=torch.int32), torch.ones(1), "found_inf must be a float tensor."),
        (torch.zeros(1), torch.ones(1, dtype=torch.int32), "inv_scale must be a float tensor."),
    ],
)
def test_unscale_refuses_what_the_cpu_refuses(
    found_inf: torch.Tensor, inverse_scale: torch.Tensor, message: str
) -> None:
    for device in ("cpu", DEVICE):
        arguments = ([torch.ones(3, device=device)], found_inf.to(device), inverse_scale.to(device))
        with pytest.raises(RuntimeError, match=message):
            torch._amp_foreach_non_finite_check_and_unscale_(*arguments)


def schedule(device: str, found: list[int], start: float, interval: int) -> list[tuple[float, int]]:
    scale = torch.full((), start, device=device)
    tracker = torch.zeros((), dtype=torch.int32, device=device)
    history = []
    for flag in found:
        found_inf = torch.full((), float(flag), device=device)
        result = torch._amp_update_scale_(scale, tracker, found_inf, 3.0, 0.25, interval)
        assert result is scale
        history.append((scale.item(), int(tracker.item())))
    return history


@pytest.mark.parametrize("interval", [1, 2, 3])
def test_update_scale_follows_the_cpus_schedule(interval: int) -> None:
    found = [0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0]
    expected = schedule("cpu", found, 64.0, interval)
    assert schedule(DEVICE, found, 64.0, interval) == expected


def test_update_scale_does_not_grow_to_infinity() -> None:
    assert schedule(DEVICE, [0], 3e38, 1) == schedule("cpu", [0], 3e38, 1)
    assert math.isfinite(schedule(DEVICE, [0], 3e38, 1)[0][0])


@pytest.mark.parametrize(
    ("scale", "tracker", "found_inf", "message"),
    [
        (torch.ones(2), torch.zeros(1, dtype=torch.int32), torch.zeros(1), "current_scale must be"),
        (torch.ones(1), torch.zeros(1), torch.zeros(1), "growth_tracker must be an int tensor."),
        (torch.ones(1), torch.zeros(2, dtype=torch.int32), torch.zeros(1), "growth_tracker must"),
        (torch.ones(1), torch.zeros(1, dtype=torch.int32), torch.zeros(2), "found_inf must be"),
    ],
)
def test_update_scale_refuses_what_the_cpu_refuses(
    scale: torch.Tensor, tracker: torch.Tensor, found_inf: torch.Tensor, message: str
) -> None:
    for device in ("cpu", DEVICE):
        tensors = [tensor.to(device) for tensor in (scale, tracker, found_inf)]
        with pytest.raises(RuntimeError, match=message):
            torch._amp_update_scale_(*tensors, 2.0, 0.5, 1)


# --- GradScaler ---


class Training:
    """One parameter, a loss that is the sum of its product with the inputs, and a scaler."""

    def __init__(self, device: str, interval: int = 2000) -> None:
        self.parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0], device=device))
        self.optimizer = torch.optim.SGD([self.parameter], lr=0.5)
        self.scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=interval)

    def step(self, *inputs: float, clip: float | None = None) -> list[float]:
        """Return the parameter's values after one step with the gradients ``inputs``."""
        self.optimizer.zero_grad()
        factors = torch.tensor(inputs, device=self.parameter.device)
        self.scaler.scale((self.parameter * factors).sum()).backward()
        if clip is not None:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_([self.parameter], clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        values: list[float] = self.parameter.detach().cpu().tolist()
        return values


def test_the_scaler_is_native() -> None:
    training = Training(DEVICE)
    backend.reset_fallback_stats()
    training.step(1, 2, 3)
    assert may_fall_back() or not set(AMP_OPERATORS) & set(backend.fallback_stats())


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_gradient_that_is_not_finite_skips_the_step_and_halves_the_scale(value: float) -> None:
    training = Training(DEVICE)
    assert training.step(1, value, 1) == [1, 2, 3]
    assert training.scaler.get_scale() == 4
    assert training.step(2, 0, -2) == [0, 2, 4]
    assert training.scaler.get_scale() == 4


def test_the_scale_doubles_after_the_growth_interval() -> None:
    training = Training(DEVICE, interval=3)
    scales = []
    for value in (1, 1, 1, 1, math.nan, 1, 1, 1):
        training.step(value, value, value)
        scales.append(training.scaler.get_scale())
    assert scales == [8, 8, 16, 16, 8, 8, 8, 16]


def test_the_state_survives_in_a_checkpoint() -> None:
    training = Training(DEVICE, interval=3)
    training.step(1, 1, 1)
    training.step(1, 1, 1)
    state = copy.deepcopy(training.scaler.state_dict())
    assert (state["scale"], state["_growth_tracker"]) == (8, 2)

    resumed = Training(DEVICE)
    resumed.scaler.load_state_dict(state)
    resumed.step(1, 1, 1)
    assert resumed.scaler.get_scale() == 16
    assert resumed.scaler.state_dict()["_growth_tracker"] == 0


def test_gradients_can_be_clipped_after_unscaling() -> None:
    ours, theirs = Training(DEVICE), Training("cpu")
    for inputs in ((3.0, 4.0, 0.0), (0.1, 0.0, 0.0), (1.0, math.inf, 0.0)):
        expected = theirs.step(*inputs, clip=1.0)
        assert ours.step(*inputs, clip=1.0) == pytest.approx(expected, rel=1e-6)
    assert ours.scaler.get_scale() == theirs.scaler.get_scale() == 4


class WithoutFloat64(TorchDispatchMode):
    """Fails if an operator makes a float64 tensor on the device."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and tensor.device.type == DEVICE:
                assert tensor.dtype is not torch.float64, f"{func} makes a float64 on the device"
        return out


def test_a_device_without_float64_scales_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch divides by the scale in float64, which such a device does not have."""
    monkeypatch.setattr(backend.amp, "dtype_support", lambda dtype, device=None: "unsupported")
    with WithoutFloat64():
        training = Training(DEVICE)
        assert training.step(2, 0, -2) == [0, 2, 4]
        assert training.step(1, math.inf, 1) == [0, 2, 4]
        assert training.scaler.get_scale() == 4
        assert training.step(2, 0, -2, clip=100.0) == [-1, 2, 5]
        resumed = Training(DEVICE)
        resumed.scaler.load_state_dict(copy.deepcopy(training.scaler.state_dict()))
        assert resumed.step(2, 0, -2) == [0, 2, 4]
        assert resumed.scaler.get_scale() == 4
        again = pickle.loads(pickle.dumps(resumed.scaler))
        assert again.get_scale() == 4


@needs_two_devices
def test_an_infinity_on_one_device_skips_the_step_on_all() -> None:
    parameters = [
        torch.nn.Parameter(torch.ones(2, device=f"{DEVICE}:{index}")) for index in range(2)
    ]
    optimizer = torch.optim.SGD(parameters, lr=1)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=4.0)
    for factor in (math.inf, 1.0):
        optimizer.zero_grad()
        loss = parameters[0].sum() + (parameters[1] * factor).sum().to(f"{DEVICE}:0")
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        expected = [1, 1] if factor == math.inf else [0, 0]
        assert [parameter.tolist() for parameter in parameters] == [expected, expected]
    assert scaler.get_scale() == 2


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("fused", [False, True])
def test_optimizers_step_as_on_the_cpu(kind: type[torch.optim.Optimizer], fused: bool) -> None:
    def train(device: str) -> tuple[torch.Tensor, float]:
        parameter = torch.nn.Parameter(sample(4, 3).to(device))
        # The base class has no argument `fused`.
        optimizer = kind([parameter], lr=0.1, fused=fused)  # type: ignore[call-arg]
        scaler = torch.amp.GradScaler(device, init_scale=16.0)
        for step in range(4):
            optimizer.zero_grad()
            inputs = sample(4, 3, seed=step).to(device)
            if step == 2:
                inputs[0, 0] = math.inf
            scaler.scale((parameter * inputs).square().mean()).backward()
            scaler.step(optimizer)
            scaler.update()
        return parameter.detach(), scaler.get_scale()

    (ours, our_scale), (theirs, their_scale) = train(DEVICE), train("cpu")
    assert our_scale == their_scale == 8
    assert_same(ours, theirs, rtol=1e-5, atol=1e-6)
