"""Generators as objects: torch.Generator of this device, and the generator argument."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, backend
from support import needs, needs_two_devices

pytestmark = needs(torch.float32, torch.int64)

DRAWS: dict[str, Callable[[torch.Generator], torch.Tensor]] = {
    "rand": lambda g: torch.rand(9, device=DEVICE, generator=g),
    "randn": lambda g: torch.randn(9, device=DEVICE, generator=g),
    "randint": lambda g: torch.randint(1000, (9,), device=DEVICE, generator=g),
    "randperm": lambda g: torch.randperm(99, device=DEVICE, generator=g),
    "normal": lambda g: torch.normal(0.0, 1.0, (9,), device=DEVICE, generator=g),
    "normal_of_tensors": lambda g: torch.normal(
        torch.zeros(9, device=DEVICE), torch.ones(9, device=DEVICE), generator=g
    ),
    "bernoulli": lambda g: torch.bernoulli(torch.full((99,), 0.5, device=DEVICE), generator=g),
    "multinomial": lambda g: torch.multinomial(torch.ones(99, device=DEVICE), 9, generator=g),
    "multinomial_with_replacement": lambda g: torch.multinomial(
        torch.ones(99, device=DEVICE), 9, replacement=True, generator=g
    ),
    "poisson": lambda g: torch.poisson(torch.full((9,), 1000.0, device=DEVICE), generator=g),
    "uniform_": lambda g: torch.empty(9, device=DEVICE).uniform_(2, 3, generator=g),
    "normal_": lambda g: torch.empty(9, device=DEVICE).normal_(2, 3, generator=g),
    "random_": lambda g: torch.empty(9, device=DEVICE).random_(generator=g),
    "exponential_": lambda g: torch.empty(9, device=DEVICE).exponential_(2, generator=g),
    "geometric_": lambda g: torch.empty(99, device=DEVICE).geometric_(0.1, generator=g),
    "cauchy_": lambda g: torch.empty(9, device=DEVICE).cauchy_(generator=g),
    "log_normal_": lambda g: torch.empty(9, device=DEVICE).log_normal_(generator=g),
    "bernoulli_": lambda g: torch.empty(99, device=DEVICE).bernoulli_(0.5, generator=g),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
class TestGeneratorArgument:
    def test_determines_the_numbers_and_keeps_the_default_generator(
        self, draw: Callable[[torch.Generator], torch.Tensor]
    ) -> None:
        before = backend.get_rng_state()
        first = draw(torch.Generator(DEVICE).manual_seed(5))
        again = draw(torch.Generator(DEVICE).manual_seed(5))
        other = draw(torch.Generator(DEVICE).manual_seed(6))
        assert again.cpu().equal(first.cpu())
        assert not other.cpu().equal(first.cpu())
        assert backend.get_rng_state().equal(before)

    def test_advances_with_each_draw(self, draw: Callable[[torch.Generator], torch.Tensor]) -> None:
        generator = torch.Generator(DEVICE).manual_seed(5)
        first = draw(generator).cpu()
        assert generator.get_offset() > 0
        assert not draw(generator).cpu().equal(first)

    def test_draws_as_the_default_generator_with_the_same_state(
        self, draw: Callable[[torch.Generator], torch.Tensor]
    ) -> None:
        backend.manual_seed(5)
        from_default = draw(backend.default_generators[0]).cpu()
        assert draw(torch.Generator(DEVICE).manual_seed(5)).cpu().equal(from_default)

    def test_of_the_cpu_is_refused(self, draw: Callable[[torch.Generator], torch.Tensor]) -> None:
        generator = torch.Generator()
        before = generator.get_state()
        with pytest.raises(RuntimeError, match=f"Expected a '{DEVICE}.*' .*found 'cpu'"):
            draw(generator)
        assert generator.get_state().equal(before)

    @needs_two_devices
    def test_of_another_device_is_refused(
        self, draw: Callable[[torch.Generator], torch.Tensor]
    ) -> None:
        with pytest.raises(RuntimeError, match=f"Expected a '{DEVICE}:0' .*found '{DEVICE}:1'"):
            draw(torch.Generator(f"{DEVICE}:1"))


def test_generator_of_the_device_is_refused_for_a_cpu_tensor() -> None:
    generator, ones = torch.Generator(DEVICE), torch.ones(3)
    for draw in (
        lambda: torch.rand(3, generator=generator),
        lambda: torch.randperm(3, generator=generator),
        lambda: torch.poisson(ones, generator=generator),
        lambda: torch.rrelu(-ones, training=True, generator=generator),
    ):
        with pytest.raises(RuntimeError, match=f"Expected a 'cpu' .*found '{DEVICE}"):
            draw()


def test_new_generator_is_for_the_current_device() -> None:
    assert torch.Generator(DEVICE).device == torch.device(DEVICE, 0)
    last = backend.device_count() - 1
    with backend.device(last):
        assert torch.Generator(DEVICE).device == torch.device(DEVICE, last)
    assert torch.Generator(torch.device(DEVICE, last)).device == torch.device(DEVICE, last)


def test_a_generator_for_a_missing_device_is_refused() -> None:
    count = backend.device_count()
    with pytest.raises(RuntimeError, match=f"invalid device {DEVICE}:{count}"):
        torch.Generator(f"{DEVICE}:{count}")


def test_a_new_generator_has_the_seed_of_cpu_generators_and_offset_0() -> None:
    generator = torch.Generator(DEVICE)
    assert generator.initial_seed() == torch.Generator().initial_seed()
    assert generator.get_offset() == 0


def test_seed_sets_a_new_seed_and_offset_0() -> None:
    generator = torch.Generator(DEVICE)
    torch.rand(3, device=DEVICE, generator=generator)
    chosen = generator.seed()
    assert generator.initial_seed() == chosen
    assert generator.get_offset() == 0
    assert generator.seed() != chosen


def test_a_state_can_be_set_on_another_generator() -> None:
    one = torch.Generator(DEVICE).manual_seed(1)
    torch.rand(3, device=DEVICE, generator=one)
    two = torch.Generator(DEVICE)
    two.set_state(one.get_state())
    first = torch.rand(3, device=DEVICE, generator=one)
    assert torch.rand(3, device=DEVICE, generator=two).cpu().equal(first.cpu())


def test_set_offset_selects_the_position_in_the_sequence() -> None:
    generator = torch.Generator(DEVICE).manual_seed(1)
    first = torch.rand(64, device=DEVICE, generator=generator).cpu()
    offset = generator.get_offset()
    second = torch.rand(64, device=DEVICE, generator=generator).cpu()
    generator.set_offset(offset)
    assert torch.rand(64, device=DEVICE, generator=generator).cpu().equal(second)
    generator.set_offset(0)
    assert torch.rand(64, device=DEVICE, generator=generator).cpu().equal(first)


@pytest.mark.parametrize(
    "duplicate",
    [torch.Generator.clone_state, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))],
    ids=["clone_state", "deepcopy", "pickle"],
)
def test_a_copy_draws_the_same_numbers_independently(
    duplicate: Callable[[torch.Generator], torch.Generator],
) -> None:
    original = torch.Generator(DEVICE).manual_seed(8)
    torch.rand(10, device=DEVICE, generator=original)
    copied = duplicate(original)
    assert copied.device == original.device
    first = torch.rand(10, device=DEVICE, generator=original)
    assert torch.rand(10, device=DEVICE, generator=copied).cpu().equal(first.cpu())


def test_graphsafe_state_is_shared() -> None:
    generator = torch.Generator(DEVICE).manual_seed(8)
    shared = generator.graphsafe_get_state()
    torch.rand(10, device=DEVICE, generator=generator)
    assert shared.get_offset() == generator.get_offset() > 0
    fresh = torch.Generator(DEVICE).manual_seed(9)
    generator.graphsafe_set_state(fresh)
    torch.rand(10, device=DEVICE, generator=generator)
    assert fresh.get_offset() == generator.get_offset()
    assert generator.initial_seed() == 9
    assert shared.initial_seed() == 8


def test_compiled_graphs_can_swap_the_default_state() -> None:
    # torch._prims.rng_prims does this around an operator whose numbers must repeat.
    generator = backend.default_generators[0]
    assert backend._get_generator(torch.device(DEVICE, 0)).get_state().equal(generator.get_state())
    saved = torch.Generator(DEVICE).manual_seed(3)
    expected = torch.rand(5, device=DEVICE, generator=saved.clone_state()).cpu()
    current = generator.graphsafe_get_state()
    before = current.get_state()
    generator.graphsafe_set_state(saved)
    drawn = torch.rand(5, device=DEVICE).cpu()
    generator.graphsafe_set_state(current)
    assert drawn.equal(expected)
    assert backend.get_rng_state().equal(before)


@needs_two_devices
def test_graphsafe_state_of_another_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match=f"{DEVICE}:0"):
        torch.Generator(f"{DEVICE}:0").graphsafe_set_state(torch.Generator(f"{DEVICE}:1"))
    with pytest.raises(RuntimeError, match=f"{DEVICE}:0"):
        torch.Generator(f"{DEVICE}:0").graphsafe_set_state(torch.Generator())


def test_default_generators_are_a_sequence_by_device() -> None:
    generators = backend.default_generators
    assert len(generators) == backend.device_count()
    assert [item.device.index for item in generators] == list(range(len(generators)))
    assert all(item.device.type == DEVICE for item in generators)
    assert generators[-1].device.index == len(generators) - 1
    assert [item.device for item in generators[:1]] == [torch.device(DEVICE, 0)]
    with pytest.raises(IndexError):
        generators[len(generators)]


def test_operators_draw_from_the_default_generator() -> None:
    backend.default_generators[0].manual_seed(44)
    assert backend.initial_seed() == 44
    torch.rand(5, device=DEVICE)
    assert backend.default_generators[0].get_offset() > 0


def test_threads_never_draw_the_same_numbers() -> None:
    drawn: list[list[int]] = [[] for _ in range(4)]

    def work(mine: list[int]) -> None:
        for _ in range(50):
            bits = torch.empty(7, dtype=torch.int64, device=DEVICE)
            mine.extend(torch.ops.aten.random_(bits, -(2**63), None).tolist())

    threads = [threading.Thread(target=work, args=(mine,)) for mine in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [number for mine in drawn for number in mine]
    assert len(numbers) == 4 * 50 * 7
    assert len(set(numbers)) == len(numbers)
