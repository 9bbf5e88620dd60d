"""One step of an optimizer for several parameters at once, against the formulas in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, tolerances
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

SHAPES: list[tuple[int, ...]] = [(17, 33), (1,), (3, 5, 7), (2050,)]
PLACES = [layouts.contiguous, layouts.offset, layouts.transposed, layouts.stepped]
STEP = 3.0

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {"lr": 0.1}),
    ("sgd", {"lr": 0.1, "weight_decay": 0.2, "maximize": True}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.2}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "first_step": True}),
    ("adam", {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-3}),
    ("adam", {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-3, "weight_decay": 0.2}),
    ("adam", {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-3, "amsgrad": True}),
    ("adamw", {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-3, "weight_decay": 0.2}),
    ("adamw", {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-3, "maximize": True}),
    ("adagrad", {"lr": 0.1, "eps": 1e-3, "lr_decay": 0.1, "weight_decay": 0.2}),
    ("adagrad", {"lr": 0.1, "eps": 1e-3, "maximize": True}),
]


def state_count(op: str, params: dict[str, Any]) -> int:
    if op == "sgd":
        return int("momentum" in params)
    return 1 if op == "adagrad" else 3 if params.get("amsgrad") else 2


def step(op: str, params: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The parameter and its states after the step. `arrays`: parameter, gradient, states."""
    p, g, *states = (array.copy() for array in arrays)
    lr, decay = params["lr"], params.get("weight_decay", 0.0)
    if params.get("maximize"):
        g = -g
    if op == "adamw":
        p *= 1 - lr * decay
    else:
        g = g + decay * p
    if op == "sgd":
        if states:
            momentum, dampening = params["momentum"], params.get("dampening", 0.0)
            first = params.get("first_step", False)
            states[0] = g if first else momentum * states[0] + (1 - dampening) * g
            g = g + momentum * states[0] if params.get("nesterov") else states[0]
        return [p - lr * g, *states]
    if op == "adagrad":
        states[0] = states[0] + g * g
        rate = lr / (1 + (STEP - 1) * params.get("lr_decay", 0.0))
        return [p - rate * g / (np.sqrt(states[0]) + params["eps"]), *states]
    beta1, beta2 = params["beta1"], params["beta2"]
    states[0] = beta1 * states[0] + (1 - beta1) * g
    states[1] = beta2 * states[1] + (1 - beta2) * g * g
    square = states[1]
    if params.get("amsgrad"):
        square = states[2] = np.maximum(states[2], states[1])
    root = np.sqrt(square) / np.sqrt(1 - beta2**STEP) + params["eps"]
    return [p - lr / (1 - beta1**STEP) * states[0] / root, *states]


class Group:
    """Parameters with their gradients and states on the device."""

    def __init__(
        self,
        device: Device,
        case: Case,
        params: dict[str, Any],
        place: layouts.Placer = layouts.contiguous,
    ) -> None:
        random = rng(case, sorted(params))
        self.device, self.case, self.params = device, case, params

        def make(count: int, positive: bool = False) -> list[Array]:
            made = []
            for shape in SHAPES * count:
                values = random.normal(size=shape)
                given = np.abs(values) if positive else values
                made.append(device.array(case.dtype, shape, place, given))
            return made

        sgd = case.op == "sgd"
        self.parameters, self.gradients = make(1), make(1)
        self.states = make(state_count(case.op, params), positive=not sgd)
        steps = [] if sgd else SHAPES
        self.steps = [device.array("float32", (), values=np.asarray(STEP)) for _ in steps]

    def of(self, index: int) -> list[Array]:
        return [self.parameters[index], self.gradients[index], *self.states[index :: len(SHAPES)]]

    def run(self, scale: Array | None = None, found: Array | None = None) -> None:
        settings = self.device.api.OptimizerParams()
        for name, value in self.params.items():
            setattr(settings, name, value)
        outputs = [*self.parameters, *self.gradients, *self.states]
        arrays = (self.parameters, self.gradients, self.states, self.steps, scale, found)
        op = self.device.api.OptimizerOp[self.case.op]
        self.device.run(self.case, outputs, op, settings, *arrays)

    def check(self, scale: float | None = None, **changed: float) -> None:
        """Runs the step and compares its results. The oracle has some other parameters."""
        device, case = self.device, self.case
        before = [[oracle.wide(array.values) for array in self.of(i)] for i in range(len(SHAPES))]
        given = (number(device, scale), number(device, 0.0)) if scale else (None, None)
        self.run(*given)
        unit = tolerances.unit_roundoff(DTYPES[tolerances.accumulator(case.dtype)])
        for index, arrays in enumerate(before):
            parameter, gradient, *states = self.of(index)
            if scale:
                arrays[1] = arrays[1] / scale
                device.assert_exact(case, gradient, arrays[1])
            else:
                assert gradient.unchanged()
            results = step(case.op, self.params | changed, arrays)
            for got, expected in zip([parameter, *states], results, strict=True):
                allowed = tolerances.spacing(expected, DTYPES[case.dtype]) + 40 * unit
                device.assert_within(case, got.read(), expected, allowed)


def number(device: Device, value: float) -> Array:
    return device.array("float32", (1,), values=np.asarray([value]))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
@pytest.mark.parametrize(("op", "params"), SETTINGS, ids=str)
def test_optimizer_step(
    device: Device, op: str, params: dict[str, Any], dtype: str, place: layouts.Placer
) -> None:
    Group(device, Case("optimizer_step", op, dtype, place.__name__), params, place).check()


@pytest.mark.parametrize("dtype", oracle.FLOATING)
@pytest.mark.parametrize(("op", "params"), SETTINGS[::2], ids=str)
def test_gradients_are_divided_by_their_scale(
    device: Device, op: str, params: dict[str, Any], dtype: str
) -> None:
    Group(device, Case("optimizer_step", op, dtype, "contiguous"), params).check(scale=4.0)


@pytest.mark.parametrize(("op", "params"), SETTINGS[::2], ids=str)
def test_a_step_is_skipped_if_found_inf_is_set(
    device: Device, op: str, params: dict[str, Any]
) -> None:
    group = Group(device, Case("optimizer_step", op, "float32", "contiguous"), params)
    group.run(number(device, 4.0), number(device, 1.0))
    for array in (*group.parameters, *group.gradients, *group.states):
        assert array.unchanged()


@pytest.mark.parametrize(("op", "params"), SETTINGS[::2], ids=str)
def test_the_learning_rate_can_be_on_the_device(
    device: Device, op: str, params: dict[str, Any]
) -> None:
    rate = number(device, 0)
    by_address = {**params, "lr": 100.0, "lr_address": rate.buffer.address}
    for lr in (0.25, 0.5):
        rate.set(np.asarray([lr]))
        case = Case("optimizer_step", op, "float32", "contiguous")
        Group(device, case, by_address).check(lr=lr)


def test_every_operation_is_tested(device: Device) -> None:
    assert {op.name for op in device.api.OptimizerOp} == {op for op, _ in SETTINGS}
