"""How the random operators fill a tensor: layouts, generator state, errors.

The CPU is the reference for arguments.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, backend, computed_by_the_cpu
from support import may_fall_back, needs, supported

Draw = Callable[[torch.Tensor], torch.Tensor]

# One call of every operator that fills a tensor of floating type.
FILLS: dict[str, Draw] = {
    "uniform": lambda t: t.uniform_(),
    "uniform_from_to": lambda t: t.uniform_(-3, 5),
    "normal": lambda t: t.normal_(),
    "normal_mean_std": lambda t: t.normal_(2, 0.5),
    "exponential": lambda t: t.exponential_(4),
    "cauchy": lambda t: t.cauchy_(3, 0.5),
    "log_normal": lambda t: t.log_normal_(0.5, 0.25),
    "random": lambda t: t.random_(),
    "random_to": lambda t: t.random_(100),
    "random_from_to": lambda t: t.random_(-20, 100),
    "bernoulli": lambda t: t.bernoulli_(0.3),
    "bernoulli_of_tensor": lambda t: t.bernoulli_(
        torch.tensor(0.3, device=t.device).expand(t.shape)
    ),
    "geometric": lambda t: t.geometric_(0.2),
}


def empty(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float32, device=DEVICE)


@needs(torch.float32)
@pytest.mark.parametrize("draw", FILLS.values(), ids=FILLS.keys())
class TestEveryFill:
    @pytest.mark.usefixtures("native_random")
    def test_results_do_not_depend_on_strides(self, draw: Draw) -> None:
        base = torch.full((7, 9, 11), 0.5, device=DEVICE)
        views = {
            "transposed": base.permute(2, 0, 1),
            "offset": base[2:, 3:, 1:],
            "stepped": base[::2, ::3, ::5],
            "one element": base[3, 4, 5],
        }
        for view in views.values():
            base.fill_(0.5)
            before = base.cpu()
            backend.manual_seed(3)
            assert draw(view) is view
            backend.manual_seed(3)
            expected = draw(empty(*view.shape)).cpu()
            assert view.cpu().equal(expected)
            written = torch.zeros(7, 9, 11, dtype=torch.bool)
            written.as_strided(view.shape, view.stride(), view.storage_offset()).fill_(True)
            assert base.cpu()[~written].equal(before[~written])

    def test_empty_tensors_do_not_advance_the_generator(self, draw: Draw) -> None:
        before = backend.get_rng_state()
        for shape in ((0,), (3, 0, 2)):
            assert draw(empty(*shape)).shape == shape
        assert backend.get_rng_state().equal(before)

    def test_overlapping_memory_is_refused(self, draw: Draw) -> None:
        with pytest.raises(RuntimeError, match="single memory location"):
            draw(empty(1).expand(5))

    def test_many_dimensions(self, draw: Draw) -> None:
        # More than the device library accepts.
        values = draw(torch.full((50,), -7777.0, device=DEVICE).view(*[1] * 20, 50)).flatten().cpu()
        assert len(values.unique()) > 1
        assert not values.eq(-7777).any()

    @pytest.mark.usefixtures("native_random")
    def test_numbers_are_drawn_on_the_device_and_not_on_the_cpu(self, draw: Draw) -> None:
        before = torch.get_rng_state()
        backend.reset_fallback_stats()
        draw(empty(10))
        drawn_on_cpu = [name for name in backend.fallback_stats() if "copy" not in name]
        assert may_fall_back() or drawn_on_cpu == []
        assert torch.get_rng_state().equal(before)


REFUSED: dict[str, Draw] = {
    "uniform_ bounds": lambda t: t.uniform_(2, 1),
    "uniform_ range": lambda t: t.uniform_(-1e300, 1e300),
    "normal_ std": lambda t: t.normal_(0, -1),
    "exponential_ rate": lambda t: t.exponential_(0),
    "exponential_ negative": lambda t: t.exponential_(-1),
    "bernoulli_ above": lambda t: t.bernoulli_(1.5),
    "bernoulli_ below": lambda t: t.bernoulli_(-0.5),
    "bernoulli_ shape": lambda t: t.bernoulli_(torch.full((3,), 0.5, device=t.device)),
    "geometric_ zero": lambda t: t.geometric_(0),
    "geometric_ one": lambda t: t.geometric_(1),
    "cauchy_ sigma": lambda t: t.cauchy_(0, 0),
    "log_normal_ std": lambda t: t.log_normal_(0, 0),
    "random_ empty range": lambda t: t.random_(5, 5),
    "random_ reversed": lambda t: t.random_(5, 2),
    "random_ zero": lambda t: t.random_(0),
    "normal std": lambda t: torch.normal(t, -1.0),
    "normal std tensor": lambda t: torch.normal(0.0, t - 1),
    "native_dropout": lambda t: torch.native_dropout(t, 1.5, True)[0],
    "dropout": lambda t: torch.nn.functional.dropout(t, 1.5),
    "randperm negative": lambda t: torch.randperm(-1, device=t.device),
    "randint empty range": lambda t: torch.randint(3, 3, (2,), device=t.device),
}


@needs(torch.float32)
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_invalid_arguments_are_refused_with_the_message_of_the_cpu(call: Draw) -> None:
    tensor = torch.zeros(4)
    before = backend.get_rng_state()
    with pytest.raises((RuntimeError, ValueError)) as expected:
        call(tensor)
    with pytest.raises(expected.type) as actual:
        call(tensor.to(DEVICE))
    assert str(actual.value) == str(expected.value)
    assert backend.get_rng_state().equal(before)


IN_PLACE: dict[str, Draw] = {
    "uniform_": lambda t: t.uniform_(),
    "normal_": lambda t: t.normal_(),
    "exponential_": lambda t: t.exponential_(),
    "cauchy_": lambda t: t.cauchy_(),
    "log_normal_": lambda t: t.log_normal_(),
    "geometric_": lambda t: t.geometric_(0.5),
    "bernoulli_": lambda t: t.bernoulli_(0.5),
    "bernoulli_ of tensor": lambda t: t.bernoulli_(torch.full((3,), 0.5, device=t.device)),
    "random_": lambda t: t.random_(),
    "random_ to": lambda t: t.random_(1),
    "random_ of int64": lambda t: torch.ops.aten.random_(t, -(2**63), None),
    "multinomial": lambda t: torch.multinomial(t, 1),
    "randperm": lambda t: torch.randperm(2, dtype=t.dtype, device=t.device),
}


@needs(torch.float32)
@pytest.mark.parametrize("dtype", list(filter(computed_by_the_cpu, supported())))
@pytest.mark.parametrize("call", IN_PLACE.values(), ids=IN_PLACE.keys())
def test_dtypes_are_those_of_the_cpu(call: Draw, dtype: torch.dtype) -> None:
    tensor = torch.ones(3, dtype=dtype)
    try:
        result = call(tensor.clone())
    except RuntimeError:
        with pytest.raises(RuntimeError):
            call(tensor.to(DEVICE))
    else:
        on_device = call(tensor.to(DEVICE))
        assert on_device.dtype is result.dtype
        assert on_device.device.type == DEVICE


@needs(torch.float32)
def test_streams_share_the_generator_of_their_device() -> None:
    backend.manual_seed(6)
    expected = [torch.rand(1000, device=DEVICE).cpu() for _ in range(4)]
    backend.manual_seed(6)
    streams = [backend.Stream() for _ in range(4)]
    drawn = []
    for stream in streams:
        with backend.stream(stream):
            drawn.append(torch.rand(1000, device=DEVICE))
    backend.synchronize()
    assert all(one.cpu().equal(other) for one, other in zip(drawn, expected, strict=True))
