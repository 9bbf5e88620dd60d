"""Tiny models of other libraries, against the CPU. They are built from configs, not downloaded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from ecosystem.tiny import llama
from support import assert_same


def compare_step(
    model: torch.nn.Module, *inputs: torch.Tensor, output: Callable[[Any], Any] = lambda it: it
) -> None:
    """Compare the outputs and the gradients of a model on the device with those on the CPU."""
    there = copy.deepcopy(model).to(DEVICE)
    expected = output(model(*inputs))
    actual = output(there(*(tensor.to(DEVICE) for tensor in inputs)))
    assert_same(actual, expected, rtol=1e-3, atol=1e-4)
    expected.sin().mean().backward()
    actual.sin().mean().backward()
    for mine, theirs in zip(there.parameters(), model.parameters(), strict=True):
        if theirs.grad is None:
            assert mine.grad is None
        else:
            assert mine.grad is not None
            assert_same(mine.grad, theirs.grad, rtol=1e-2, atol=1e-3)


@pytest.mark.ecosystem("transformers")
@pytest.mark.parametrize("beams", [1, 3])
def test_generate_gives_the_same_tokens(beams: int) -> None:
    model = llama().eval()
    prompt = torch.randint(1, 64, (2, 5))
    options = {"max_new_tokens": 8, "do_sample": False, "num_beams": beams}
    expected = model.generate(prompt, **options)
    assert_same(model.to(DEVICE).generate(prompt.to(DEVICE), **options), expected)


@pytest.mark.ecosystem("peft", "transformers")
def test_peft_adapters_train() -> None:
    import peft

    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    model = peft.get_peft_model(llama(), config)
    compare_step(model, torch.randint(1, 64, (2, 8)), output=lambda it: it.logits)


@pytest.mark.ecosystem("torchvision")
def test_torchvision_models_and_operators() -> None:
    from torchvision import models, ops

    compare_step(models.resnet18(num_classes=10).eval(), torch.randn(2, 3, 64, 64))
    boxes = torch.tensor([[0, 0, 2, 2.0], [0, 0, 2, 2.1], [3, 3, 5, 5]])
    scores = torch.tensor([0.9, 0.8, 0.7])
    assert_same(ops.nms(boxes.to(DEVICE), scores.to(DEVICE), 0.5), ops.nms(boxes, scores, 0.5))


@pytest.mark.ecosystem("timm")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vit_tiny_patch16_224", {"img_size": 64, "depth": 2}),
        ("convnext_atto", {"depths": (1, 1, 1, 1)}),
    ],
)
def test_timm_models_train(name: str, options: dict[str, Any]) -> None:
    import timm

    compare_step(timm.create_model(name, num_classes=5, **options), torch.randn(2, 3, 64, 64))


@pytest.mark.ecosystem("diffusers")
def test_a_diffusers_pipeline_gives_the_same_image() -> None:
    import diffusers

    model = diffusers.UNet2DModel(
        sample_size=8,
        layers_per_block=1,
        block_out_channels=(32, 64),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    )
    compare_step(model, torch.randn(2, 3, 8, 8), torch.tensor(10), output=lambda it: it.sample)
    images = []
    for device in ("cpu", DEVICE):
        scheduler = diffusers.DDIMScheduler(num_train_timesteps=10)
        pipeline = diffusers.DDIMPipeline(model, scheduler).to(device)
        pipeline.set_progress_bar_config(disable=True)
        generator = torch.Generator().manual_seed(0)
        drawn = pipeline(generator=generator, num_inference_steps=3, output_type="np")
        assert pipeline.device.type == device
        images.append(torch.as_tensor(drawn.images))
    torch.testing.assert_close(images[1], images[0], rtol=1e-3, atol=1e-4)


@pytest.mark.ecosystem("torchmetrics")
@pytest.mark.parametrize("name", ["Accuracy", "F1Score", "AUROC", "ConfusionMatrix"])
def test_torchmetrics_over_batches(name: str) -> None:
    import torchmetrics

    here, there = (
        getattr(torchmetrics, name)("multiclass", num_classes=5).to(device)
        for device in ("cpu", DEVICE)
    )
    for _ in range(3):
        scores, labels = torch.rand(20, 5).softmax(-1), torch.randint(0, 5, (20,))
        here.update(scores, labels)
        there.update(scores.to(DEVICE), labels.to(DEVICE))
    assert_same(there.compute(), here.compute())


@pytest.mark.ecosystem("torch_geometric")
@pytest.mark.parametrize("layer", ["GCNConv", "GATConv", "SAGEConv"])
def test_graph_layers_train(layer: str) -> None:
    from torch_geometric import nn

    edges = torch.randint(0, 10, (2, 30))
    compare_step(getattr(nn, layer)(4, 3), torch.randn(10, 4), edges)


@pytest.mark.ecosystem("gpytorch")
def test_a_gaussian_process_trains_and_predicts() -> None:
    import gpytorch

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc, unused-ignore]
        def __init__(self, x: torch.Tensor, y: torch.Tensor, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: torch.Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    means = []
    for device in ("cpu", DEVICE):
        x = torch.linspace(0, 1, 20).to(device)
        y = torch.linspace(0, 6, 20).sin().to(device)
        likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
        model = Model(x, y, likelihood).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        for _ in range(5):
            optimizer.zero_grad()
            (-objective(model(x), y)).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            means.append(model(torch.linspace(0, 1, 7).to(device)).mean)
    assert_same(means[1], means[0], rtol=1e-3, atol=1e-4)


@pytest.mark.ecosystem("accelerate")
def test_accelerate_dispatches_a_model_to_devices_by_name() -> None:
    import accelerate

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    inputs = torch.randn(2, 4)
    expected = model(inputs)
    last = f"{DEVICE}:{torch.get_device_module(DEVICE).device_count() - 1}"
    placed = accelerate.dispatch_model(model, {"0": f"{DEVICE}:0", "1": last})
    assert str(placed[1].weight.device) == last
    torch.testing.assert_close(placed(inputs).cpu(), expected)
