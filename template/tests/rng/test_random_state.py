"""Seeds and states of the devices' generators, and PyTorch's use of them."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from support import needs, needs_two_devices, run_python

pytestmark = needs(torch.float32)

COUNT = backend.device_count()
LAST = torch.device(DEVICE, COUNT - 1)
STATE_BYTES = 16


def draw(device: torch.device | str = DEVICE, size: int = 100) -> torch.Tensor:
    return torch.rand(size, device=device).cpu()


def test_torch_manual_seed_seeds_every_device() -> None:
    torch.manual_seed(7)
    assert [item.initial_seed() for item in backend.default_generators] == [7] * COUNT


def test_torch_seed_seeds_every_device_with_what_it_returns() -> None:
    chosen = torch.seed()
    assert [item.initial_seed() for item in backend.default_generators] == [chosen] * COUNT


def test_seeding_starts_no_runtime() -> None:
    run_python(f"""
        import torch
        module = torch.get_device_module("{DEVICE}")
        torch.manual_seed(3)
        module.seed_all()
        module.set_rng_state_all(module.get_rng_state_all())
        torch.Generator("{DEVICE}").manual_seed(4)
        module.manual_seed(5)
        assert not module.is_initialized()
        first = torch.rand(5, device="{DEVICE}").cpu()
        assert module.is_initialized()
        module.manual_seed(5)
        assert torch.rand(5, device="{DEVICE}").cpu().equal(first)
    """)


def test_initial_seed_without_a_seed_is_that_of_a_new_generator() -> None:
    run_python(f"""
        import torch
        module = torch.get_device_module("{DEVICE}")
        assert module.initial_seed() == torch.Generator().initial_seed()
        assert module.initial_seed() == torch.Generator("{DEVICE}").initial_seed()
    """)


def test_state_is_the_seed_and_the_offset() -> None:
    backend.manual_seed(0x0123456789ABCDEF)
    assert backend.get_rng_state().tolist() == [*range(0xEF, 0, -0x22), *[0] * 8]
    draw(size=1000)
    state = backend.get_rng_state()
    assert state.dtype is torch.uint8
    assert state.device.type == "cpu"
    assert state.shape == (STATE_BYTES,)
    assert state[:8].view(torch.int64).item() == 0x0123456789ABCDEF
    offset = state[8:].view(torch.int64).item()
    assert offset == backend.default_generators[0].get_offset()
    assert offset >= 1000
    assert offset % 4 == 0


def test_state_is_a_copy() -> None:
    state = backend.get_rng_state()
    before = state.clone()
    draw()
    assert state.equal(before)
    state.zero_()
    assert not backend.get_rng_state().equal(state)


def test_state_without_a_device_is_that_of_the_current_device() -> None:
    with backend.device(LAST):
        backend.manual_seed(21)
        assert backend.initial_seed() == 21
        assert backend.get_rng_state().equal(backend.get_rng_state(LAST))
        assert backend.get_rng_state(DEVICE).equal(backend.get_rng_state(LAST))
        assert backend.get_rng_state(torch.device(DEVICE)).equal(backend.get_rng_state(LAST))
        backend.set_rng_state(torch.zeros(STATE_BYTES, dtype=torch.uint8))
    assert backend.get_rng_state(LAST).tolist() == [0] * STATE_BYTES


@needs_two_devices
def test_manual_seed_of_the_module_seeds_only_the_current_device() -> None:
    torch.manual_seed(0)
    other = backend.get_rng_state(1)
    backend.manual_seed(5)
    assert backend.initial_seed() == 5
    assert backend.get_rng_state(1).equal(other)


@needs_two_devices
def test_seed_sets_a_new_seed_on_the_current_device_only() -> None:
    other = backend.get_rng_state(1)
    backend.seed()
    first = backend.initial_seed()
    backend.seed()
    assert backend.initial_seed() != first
    assert backend.get_rng_state(1).equal(other)


def test_seed_all_gives_every_device_the_same_new_seed() -> None:
    backend.seed_all()
    first = [item.initial_seed() for item in backend.default_generators]
    backend.seed_all()
    second = [item.initial_seed() for item in backend.default_generators]
    assert len(set(first)) == len(set(second)) == 1
    assert first != second


def test_states_of_all_devices_can_be_restored() -> None:
    devices = [torch.device(DEVICE, index) for index in range(COUNT)]
    for index, device in enumerate(devices):
        draw(device, size=10 * (index + 1))
    states = backend.get_rng_state_all()
    assert len(states) == COUNT
    first = [draw(device) for device in devices]
    backend.set_rng_state_all(states)
    assert all(draw(device).equal(one) for device, one in zip(devices, first, strict=True))


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63, 2**64 - 1, -(2**63)])
def test_every_64_bit_integer_is_a_valid_seed(seed: int) -> None:
    backend.manual_seed(seed)
    assert backend.initial_seed() == seed % 2**64
    assert backend.get_rng_state()[:8].tolist() == list((seed % 2**64).to_bytes(8, "little"))


@pytest.mark.parametrize("size", [0, 8, 15, 17, 5056])
def test_state_of_another_size_is_refused(size: int) -> None:
    before = backend.get_rng_state()
    with pytest.raises(RuntimeError, match=f"expected 16 bytes.* got {size}"):
        backend.set_rng_state(torch.zeros(size, dtype=torch.uint8))
    assert backend.get_rng_state().equal(before)


def test_state_of_another_dtype_is_refused() -> None:
    with pytest.raises(TypeError, match=r"must be a torch\.ByteTensor"):
        backend.set_rng_state(torch.zeros(2, dtype=torch.int64))


@needs(torch.uint8)
def test_state_on_the_device_is_refused() -> None:
    with pytest.raises(TypeError, match=r"must be a torch\.ByteTensor"):
        backend.set_rng_state(backend.get_rng_state().to(DEVICE))


def test_offset_between_blocks_is_refused() -> None:
    state = torch.zeros(STATE_BYTES, dtype=torch.uint8)
    state[8] = 6
    before = backend.get_rng_state()
    with pytest.raises(RuntimeError, match="multiple of 4, but got 6"):
        backend.set_rng_state(state)
    with pytest.raises(RuntimeError, match="multiple of 4, but got 6"):
        backend.default_generators[0].set_offset(6)
    assert backend.get_rng_state().equal(before)


def test_a_missing_device_is_refused() -> None:
    for call in (
        lambda: backend.get_rng_state(COUNT),
        lambda: backend.set_rng_state(backend.get_rng_state(), f"{DEVICE}:{COUNT}"),
        lambda: backend.set_rng_state_all([*backend.get_rng_state_all(), backend.get_rng_state()]),
    ):
        with pytest.raises(RuntimeError, match=f"invalid device {DEVICE}:{COUNT}"):
            call()
    with pytest.raises(RuntimeError, match="invalid device"):
        backend.get_rng_state(2**40)


@pytest.mark.parametrize("device", ["cpu", torch.device("meta"), 1.5])
def test_device_of_another_type_is_refused(device: object) -> None:
    with pytest.raises(ValueError, match=f"expected a {DEVICE} device"):
        backend.get_rng_state(device)


@needs_two_devices
def test_same_seed_gives_the_same_numbers_on_every_device() -> None:
    torch.manual_seed(12)
    drawn = [draw(torch.device(DEVICE, index)) for index in range(COUNT)]
    assert all(one.equal(drawn[0]) for one in drawn)


@needs_two_devices
def test_drawing_on_one_device_does_not_advance_the_others() -> None:
    before = backend.get_rng_state(1)
    draw(f"{DEVICE}:0")
    torch.nn.functional.dropout(torch.ones(10, device=f"{DEVICE}:0"))
    assert backend.get_rng_state(1).equal(before)


def test_drawing_on_the_device_does_not_advance_the_cpu_generator() -> None:
    before = torch.get_rng_state()
    draw()
    torch.randn(10, device=DEVICE)
    torch.randperm(10, device=DEVICE)
    torch.multinomial(torch.ones(4, device=DEVICE), 2)
    torch.nn.functional.dropout(torch.ones(10, device=DEVICE))
    torch.poisson(torch.ones(10, device=DEVICE))
    assert torch.get_rng_state().equal(before)


def test_drawing_on_the_cpu_does_not_advance_the_device_generator() -> None:
    before = backend.get_rng_state_all()
    torch.rand(10)
    assert all(one.equal(two) for one, two in zip(backend.get_rng_state_all(), before, strict=True))


@pytest.mark.filterwarnings("ignore:.*available devices")
def test_fork_rng_of_the_backend_covers_all_devices_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(backend, "get_rng_state", asked.append)
    monkeypatch.setattr(backend, "set_rng_state", lambda state, device: None)
    with torch.random.fork_rng():
        pass
    assert asked == list(range(COUNT))
