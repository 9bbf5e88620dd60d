"""Seeds and random state, for generators of the device or of the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import needs
from torch.utils.checkpoint import checkpoint

pytestmark = needs(torch.float32)

DRAWS_ON_THE_CPU = backend.manual_seed.__module__.endswith(".seeding")
LAST = torch.device(DEVICE, backend.device_count() - 1)


def draw(device: torch.device | str = DEVICE) -> torch.Tensor:
    return torch.rand(100, device=device).cpu()


def test_manual_seed_reaches_the_device_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.manual_seed(7)
        first = draw()
        torch.manual_seed(7)
        assert draw().equal(first)
        torch.manual_seed(8)
        assert not draw().equal(first)
        torch.seed()


def test_torch_manual_seed_calls_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(backend, "manual_seed_all", seeds.append)
    torch.manual_seed(7)
    assert seeds == [7]
    chosen = torch.seed()
    assert seeds == [7, chosen]
    monkeypatch.setattr(backend, "_is_in_bad_fork", lambda: True)
    torch.manual_seed(9)
    assert seeds == [7, chosen]


def test_torch_warns_if_the_module_has_no_manual_seed_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(backend, "manual_seed_all")
    with pytest.warns(UserWarning, match=f"Set seed for `{DEVICE}` device does not take effect"):
        torch.manual_seed(7)


@pytest.mark.parametrize("device", [None, LAST.index, str(LAST), LAST])
def test_state_can_be_restored(device: int | str | torch.device | None) -> None:
    arguments = [] if device is None else [device]
    where = torch.device(DEVICE) if device is None else LAST
    state = backend.get_rng_state(*arguments)
    assert state.dtype is torch.uint8
    assert state.device.type == "cpu"
    first = draw(where)
    backend.set_rng_state(state, *arguments)
    assert draw(where).equal(first)


def test_manual_seed_of_the_module_repeats() -> None:
    backend.manual_seed(11)
    first = draw()
    backend.manual_seed(11)
    assert draw().equal(first)


def test_fork_rng_leaves_the_state_as_it_was() -> None:
    torch.manual_seed(3)
    expected = draw(LAST)
    torch.manual_seed(3)
    with torch.random.fork_rng(devices=range(backend.device_count()), device_type=DEVICE):
        draw(LAST)
        torch.manual_seed(99)
    assert draw(LAST).equal(expected)


def test_fork_rng_calls_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int]] = []
    monkeypatch.setattr(backend, "get_rng_state", lambda device: calls.append(("get", device)))
    monkeypatch.setattr(backend, "set_rng_state", lambda _, device: calls.append(("set", device)))
    with torch.random.fork_rng(devices=[LAST.index], device_type=DEVICE):
        pass
    assert calls == [("get", LAST.index), ("set", LAST.index)]


def test_checkpointing_saves_and_restores_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def recorder(name: str) -> Callable[..., Any]:
        function = getattr(backend, name)

        def recorded(*arguments: Any) -> Any:
            calls.append(name)
            return function(*arguments)

        return recorded

    for name in ("get_rng_state", "set_rng_state"):
        monkeypatch.setattr(backend, name, recorder(name))
    leaf = torch.ones(3, device=DEVICE, requires_grad=True)
    checkpoint(torch.exp, leaf, use_reentrant=False).sum().backward()
    assert calls[0] == "get_rng_state"
    assert "set_rng_state" in calls


@pytest.mark.skipif(not DRAWS_ON_THE_CPU, reason="the device has generators of its own")
def test_random_operators_draw_from_the_generator_of_the_cpu() -> None:
    torch.manual_seed(4)
    on_device = [
        draw(),
        torch.randn(5, device=DEVICE).cpu(),
        torch.randperm(9, device=DEVICE).cpu(),
    ]
    torch.manual_seed(4)
    on_cpu = [torch.rand(100), torch.randn(5), torch.randperm(9)]
    assert all(one.equal(other) for one, other in zip(on_device, on_cpu, strict=True))


@pytest.mark.skipif(not DRAWS_ON_THE_CPU, reason="the device has generators of its own")
def test_the_error_for_a_device_generator_names_the_cpus() -> None:
    with pytest.raises((NotImplementedError, RuntimeError), match=r"torch.Generator\(\)"):
        torch.Generator(DEVICE)


@pytest.mark.skipif(not DRAWS_ON_THE_CPU, reason="the device has generators of its own")
def test_a_cpu_generator_is_accepted() -> None:
    generator = torch.Generator().manual_seed(2)
    first = torch.rand(5, device=DEVICE, generator=generator).cpu()
    assert first.equal(torch.rand(5, generator=torch.Generator().manual_seed(2)))
