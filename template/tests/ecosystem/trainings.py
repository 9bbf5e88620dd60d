"""Small trainings with other libraries, on the device or on the CPU. Each needs its own process,
because libraries choose their device once.
"""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

import torch
from backend import PACKAGE
from torch import Tensor, nn
from torch.utils.data import DataLoader

STEPS = 6
RATE = 0.05


def perceptron() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))


def batches() -> DataLoader[tuple[Tensor, ...]]:
    generator = torch.Generator().manual_seed(1)
    size = 8 * STEPS
    inputs = torch.randn(size, 8, generator=generator)
    classes = torch.randint(0, 4, (size,), generator=generator)
    return DataLoader(torch.utils.data.TensorDataset(inputs, classes), batch_size=8)


def save(file: str, model: nn.Module, losses: list[Any]) -> None:
    """Save the losses, and the model's parameters and statistics."""
    state = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    torch.save(state | {"losses": torch.tensor([float(loss) for loss in losses])}, file)


def by_trainer(device: str, precision: str, file: str) -> None:
    """Train a transformer by ``transformers.Trainer``, in the environment's precision."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    torch.manual_seed(0)
    size = {"vocab_size": 16, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 2}
    # No dropout, because the two devices draw different random numbers.
    model = GPT2LMHeadModel(GPT2Config(**size, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
    tokens = torch.randint(0, 16, (4 * STEPS, 12), generator=torch.Generator().manual_seed(1))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=STEPS,
            per_device_train_batch_size=4,
            learning_rate=10 * RATE,
            optim="sgd",
            logging_steps=1,
            report_to=[],
            save_strategy="no",
        )
        data = [{"input_ids": row, "labels": row} for row in tokens]
        trainer = Trainer(model, arguments, train_dataset=data)
        trainer.train()
    assert model.device.type == device
    save(file, model, [entry["loss"] for entry in trainer.state.log_history if "loss" in entry])


def by_accelerate(device: str, precision: str, file: str) -> None:
    """Train a perceptron by ``accelerate``, in the environment's precision."""
    from accelerate import Accelerator

    accelerator = Accelerator(gradient_accumulation_steps=2)
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    model, optimizer, data = accelerator.prepare(model, optimizer, batches())
    losses = []
    for inputs, classes in data:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(inputs), classes)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss)
    assert losses[0].device.type == device
    save(file, accelerator.unwrap_model(model), losses)


def by_lightning(device: str, precision: str, file: str) -> None:
    """Train a perceptron by Lightning, with its own accelerator on the CPU."""
    import lightning

    class Module(lightning.LightningModule):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.model = perceptron()
            self.losses: list[Tensor] = []

        def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
            inputs, classes = batch
            loss = nn.functional.cross_entropy(self.model(inputs), classes)
            self.losses.append(loss.detach())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=RATE, momentum=0.9)

    mixed = {"no": None, "bf16": "bf16-mixed"}[precision]
    where: dict[str, Any] = {"accelerator": "cpu", "precision": mixed}
    if device != "cpu":
        integration = importlib.import_module(f"{PACKAGE}.integrations.lightning")
        where = {"strategy": integration.single_device(0, mixed)}
    module = Module()
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            **where,
            default_root_dir=Path(folder),
            max_epochs=1,
            gradient_clip_val=0.5,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
        )
        trainer.fit(module, batches())
    assert module.losses[0].device.type == device  # the model itself is on the CPU again
    save(file, module.model, module.losses)
