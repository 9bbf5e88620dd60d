"""Scientific libraries: results and gradients on the device equal those on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import assert_same, natively, needs
from torch import Tensor

Outcome = Callable[[str], Tensor]


def compare(outcome: Outcome, tolerance: float = 1e-3) -> None:
    """Compare the result of ``outcome`` on the device with that on the CPU."""
    torch.manual_seed(0)
    expected = outcome("cpu")
    torch.manual_seed(0)
    with natively():
        actual = outcome(DEVICE)
    assert_same(actual, expected, rtol=tolerance, atol=tolerance / 10)


def flat(tensors: Any) -> Tensor:
    """Return the elements of several tensors, complex ones as real and imaginary parts."""
    parts = [torch.view_as_real(each) if each.is_complex() else each for each in tensors]
    return torch.cat([each.detach().flatten() for each in parts])


@needs(torch.float64)
@pytest.mark.ecosystem("botorch")
def test_botorch_acquisition_function() -> None:
    from botorch.acquisition import LogExpectedImprovement
    from botorch.models import SingleTaskGP

    def outcome(device: str) -> Tensor:
        x = torch.rand(10, 2, dtype=torch.float64).to(device)
        y = (x.sum(-1, keepdim=True) * 3).sin()
        improvement = LogExpectedImprovement(SingleTaskGP(x, y), best_f=y.max())
        points = torch.rand(5, 1, 2, dtype=torch.float64).to(device).requires_grad_()
        improvement(points).sum().backward()
        assert points.grad is not None
        return points.grad

    compare(outcome)


@pytest.mark.ecosystem("pyro")
def test_pyro_variational_inference() -> None:
    import pyro
    from pyro import distributions, infer

    def outcome(device: str) -> Tensor:
        pyro.clear_param_store()
        seen = (torch.arange(20.0) / 20).to(device)

        def model(seen: Tensor) -> None:
            mean = pyro.sample("mean", distributions.Normal(torch.zeros((), device=device), 1.0))
            with pyro.plate("seen", len(seen)):
                pyro.sample("each", distributions.Normal(mean, 0.1), obs=seen)

        def guide(seen: Tensor) -> None:
            pyro.sample("mean", distributions.Delta(pyro.param("place", seen.new_zeros(()))))

        adam = pyro.optim.Adam({"lr": 0.05})
        inference = infer.SVI(model, guide, adam, infer.Trace_ELBO())
        for _ in range(20):
            inference.step(seen)
        return flat([pyro.param("place")])

    compare(outcome)


@pytest.mark.ecosystem("kornia")
def test_kornia_filters_and_rotations() -> None:
    import kornia

    def outcome(device: str) -> Tensor:
        image = torch.rand(2, 3, 32, 32).to(device)
        blurred = kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5))
        turned = kornia.geometry.rotate(blurred, torch.tensor([30.0, 45.0]).to(device))
        return flat(
            [
                kornia.filters.sobel(turned),
                kornia.color.rgb_to_hsv(image),
                kornia.enhance.equalize(image),
            ]
        )

    compare(outcome)


@pytest.mark.ecosystem("monai")
def test_monai_segmentation() -> None:
    from monai.losses import DiceLoss
    from monai.networks.nets import UNet

    def outcome(device: str) -> Tensor:
        model = UNet(2, 1, 2, (4, 8, 16), (2, 2)).to(device)
        image = torch.rand(2, 1, 32, 32).to(device)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        loss = DiceLoss(softmax=True, to_onehot_y=True)
        for _ in range(3):
            optimizer.zero_grad()
            loss(model(image), (image > 0.5).float()).backward()
            optimizer.step()
        return flat([model(image)])

    compare(outcome)


@needs(torch.complex64)
@pytest.mark.ecosystem("neuralop")
def test_neuralop_fourier_neural_operator() -> None:
    from neuralop.models import FNO

    def outcome(device: str) -> Tensor:
        model = FNO(n_modes=(8, 8), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2)
        result = model.to(device)(torch.rand(2, 1, 16, 16).to(device))
        result.square().mean().backward()
        return flat([result, *(each.grad for each in model.parameters() if each.grad is not None)])

    compare(outcome)


@needs(torch.complex64)
@pytest.mark.ecosystem("whisper")
def test_whisper_speech_to_text() -> None:
    import whisper
    from whisper.model import ModelDimensions, Whisper

    def outcome(device: str) -> Tensor:
        model = Whisper(ModelDimensions(80, 100, 32, 2, 2, 64, 32, 32, 2, 2))
        # Whisper does not initialise it.
        torch.nn.init.normal_(model.decoder.positional_embedding, std=0.1)
        sound = torch.sin(torch.arange(32000.0) / 20)
        heard = whisper.log_mel_spectrogram(sound, device=device)[None, :, :200]
        return flat([model.to(device)(heard, torch.arange(8)[None].to(device))])

    compare(outcome)


@pytest.mark.ecosystem("torchdiffeq")
def test_torchdiffeq_solution_and_adjoint() -> None:
    from torchdiffeq import odeint_adjoint

    class Slope(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, time: Tensor, y: Tensor) -> Tensor:
            return torch.tanh(self.layer(y))

    def outcome(device: str) -> Tensor:
        slope = Slope().to(device)
        times = torch.linspace(0, 1, 5).to(device)
        path = odeint_adjoint(slope, torch.ones(3, 2).to(device), times)
        path.sum().backward()
        return flat([path, slope.layer.weight.grad])

    compare(outcome)


@pytest.mark.ecosystem("e3nn")
def test_e3nn_tensor_products() -> None:
    from e3nn import o3

    def outcome(device: str) -> Tensor:
        irreps = "2x0e+1x1o"
        product = o3.FullyConnectedTensorProduct(irreps, "1x0e+1x1o", irreps).to(device)
        sphere = o3.spherical_harmonics("1x0e+1x1o", torch.rand(4, 3).to(device), True)
        return flat([product(torch.rand(4, 5).to(device), sphere)])

    compare(outcome)


@pytest.mark.ecosystem("ot")
def test_pot_optimal_transport() -> None:
    import ot

    def outcome(device: str) -> Tensor:
        one, other = torch.rand(8, 2).to(device), torch.rand(8, 2).to(device)
        weights = torch.full((8,), 1 / 8).to(device)
        return flat([ot.sinkhorn(weights, weights, ot.dist(one, other), 0.1)])

    compare(outcome)
