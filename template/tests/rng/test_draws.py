"""Draws whose parameters are tensors, and distributions that use them.

device/tests/kernels/test_draw.py tests the family's numbers against scipy, without PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from backend import DEVICE, backend
from support import avoidable, is_simulator, needs, reports_errors
from torch import distributions

pytestmark = needs(torch.float32, torch.int64)

Draw = Callable[..., torch.Tensor]

DRAWS: dict[str, Draw] = {
    "poisson": torch.poisson,
    "gamma": torch._standard_gamma,
    "dirichlet": torch._sample_dirichlet,
    "binomial": lambda x, **more: torch.binomial((4 * x).round(), x / (1 + x), **more),
}
drawing = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


def parameters(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return positive numbers, some of them small."""
    count = math.prod(shape)
    return (torch.linspace(0.25, 12, count).reshape(shape)).to(dtype)


@pytest.fixture
def native() -> Iterator[None]:
    """Fail a test with a fallback, or skip it on a device that lacks the family."""
    backend.reset_fallback_stats()
    torch.poisson(torch.ones(1, device=DEVICE))
    if backend.fallback_stats():
        assert not is_simulator()
        pytest.skip("the device library has no `draw` family")
    yield
    assert not avoidable(backend.fallback_stats())


# --- The sequence ---


@drawing
def test_each_element_advances_the_generator_by_one_block(
    draw: Draw, native_random: None, native: None
) -> None:
    x = parameters(7, 3).to(DEVICE)
    generator = torch.Generator(DEVICE).manual_seed(3)
    before = backend.get_rng_state()
    draw(x, generator=generator)
    assert generator.get_offset() == 4 * 21
    draw(x[:0], generator=generator)
    assert generator.get_offset() == 4 * 21
    assert backend.get_rng_state().equal(before)


@drawing
def test_results_do_not_depend_on_strides(draw: Draw, native: None) -> None:
    x = parameters(12, 8)
    wide = torch.zeros(12, 16)
    wide[:, ::2] = x
    results = []
    for given in (x.to(DEVICE), x.T.contiguous().to(DEVICE).T, wide.to(DEVICE)[:, ::2]):
        torch.manual_seed(1)
        results.append(draw(given))
    assert all(result.is_contiguous() for result in results)
    assert all(result.cpu().equal(results[0].cpu()) for result in results)


@drawing
def test_any_shape(draw: Draw, native: None) -> None:
    for shape in ((), (1,), (0,), (3, 0), (0, 3), (2, 3, 4)):
        result = draw(parameters(*shape).to(DEVICE))
        assert result.shape == shape
        assert result.isfinite().all()
    expanded = draw(torch.full((1,), 3.0, device=DEVICE).expand(1000))
    assert len(expanded.unique()) > 4


def test_each_operator_draws_from_its_distribution(native: None) -> None:
    x = parameters(20, 50).to(DEVICE)
    gamma, poisson = torch._standard_gamma(x), torch.poisson(x)
    assert not gamma.equal(gamma.round())
    assert poisson.equal(poisson.round())
    assert poisson.gt(x).any()
    counts = torch.binomial((4 * x).round(), x / (1 + x))
    assert (counts.equal(counts.round()), bool((counts <= 4 * x + 0.5).all())) == (True, True)
    torch.testing.assert_close(torch._sample_dirichlet(x).sum(1).cpu(), torch.ones(20))


def test_out_variants() -> None:
    x = parameters(6).to(DEVICE)
    for name in ("poisson", "_standard_gamma", "_sample_dirichlet"):
        operator = getattr(torch.ops.aten, name)
        out = torch.empty(0, device=DEVICE)
        torch.manual_seed(2)
        assert operator.out(x, out=out) is out
        torch.manual_seed(2)
        assert operator(x).cpu().equal(out.cpu())
        with pytest.raises(RuntimeError, match="dtype"):
            operator.out(x, out=torch.empty(6, dtype=torch.int64, device=DEVICE))


def test_parameters_of_binomials_are_broadcast(native: None) -> None:
    counts, probabilities = torch.tensor([[3.0], [9.0]]), torch.tensor([0.0, 1.0])
    result = torch.binomial(counts.to(DEVICE), probabilities.to(DEVICE))
    assert result.tolist() == [[0, 3], [0, 9]]


# --- Mistakes ---


def test_a_generator_of_the_cpu_is_refused() -> None:
    for draw in DRAWS.values():
        with pytest.raises(RuntimeError, match="generator"):
            draw(torch.ones(3, device=DEVICE), generator=torch.Generator())


@reports_errors
@pytest.mark.parametrize("rate", [-1.0, math.nan])
def test_an_invalid_poisson_rate_raises(rate: float, native: None) -> None:
    rates = torch.ones(100)
    rates[50] = rate
    with pytest.raises(RuntimeError, match="expected rate to be non-negative"):
        torch.poisson(rates)
    with pytest.raises(RuntimeError, match="expected rate to be non-negative"):
        torch.poisson(rates.to(DEVICE)).cpu()
    backend.acknowledge_failure()


@reports_errors
@pytest.mark.parametrize("probability", [1.5, -0.5, math.nan])
def test_an_invalid_probability_raises(probability: float) -> None:
    values = torch.tensor([0.5, probability], device=DEVICE)
    with pytest.raises(RuntimeError, match="all elements of p to be between 0 and 1"):
        torch.bernoulli(values).cpu()
    backend.acknowledge_failure()


# --- Gradients ---


def test_gradients_reach_the_parameters(native: None) -> None:
    torch.manual_seed(0)
    concentration = torch.full((20_000,), 3.0, device=DEVICE, requires_grad=True)
    distributions.Gamma(concentration, torch.ones_like(concentration)).rsample().sum().backward()
    # The mean of a gamma distribution is its concentration.
    assert concentration.grad is not None
    assert concentration.grad.mean().item() == pytest.approx(1, abs=0.02)
    both = torch.tensor([2.0, 6.0], device=DEVICE, requires_grad=True)
    distributions.Beta(both[0], both[1]).rsample((20_000,)).mean().backward()
    assert both.grad is not None
    assert both.grad.tolist() == pytest.approx([6 / 64, -2 / 64], rel=0.05)
    rates = torch.ones(3, device=DEVICE, requires_grad=True)
    torch.poisson(rates).sum().backward()
    assert rates.grad is not None
    assert rates.grad.tolist() == [0, 0, 0]


# --- torch.distributions ---


def on_device(*numbers: float) -> list[torch.Tensor]:
    return [torch.tensor(number, device=DEVICE) for number in numbers]


DISTRIBUTIONS: dict[str, Callable[[], distributions.Distribution]] = {
    "gamma": lambda: distributions.Gamma(*on_device(2.5, 2.0)),
    "beta": lambda: distributions.Beta(*on_device(2.0, 0.5)),
    "dirichlet": lambda: distributions.Dirichlet(torch.tensor([0.5, 1, 3], device=DEVICE)),
    "student_t": lambda: distributions.StudentT(*on_device(9.0, 1.0, 0.5)),
    "chi2": lambda: distributions.Chi2(*on_device(3.0)),
    "fisher_snedecor": lambda: distributions.FisherSnedecor(*on_device(5.0, 30.0)),
    "inverse_gamma": lambda: distributions.InverseGamma(*on_device(9.0, 2.0)),
    "poisson": lambda: distributions.Poisson(*on_device(4.0)),
    "binomial": lambda: distributions.Binomial(20, *on_device(0.25)),
    "multinomial": lambda: distributions.Multinomial(9, torch.tensor([1.0, 2, 1], device=DEVICE)),
    "negative_binomial": lambda: distributions.NegativeBinomial(*on_device(6.0, 0.5)),
    "von_mises": lambda: distributions.VonMises(*on_device(0.5, 4.0)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_run_on_the_device(name: str, native: None, native_random: None) -> None:
    torch.manual_seed(11)
    distribution = DISTRIBUTIONS[name]()
    backend.reset_fallback_stats()
    drawn = distribution.sample((100,))
    assert drawn.device.type == DEVICE
    assert distribution.log_prob(drawn).isfinite().all()
    if distribution.has_rsample:
        assert distribution.rsample((3,)).device.type == DEVICE
