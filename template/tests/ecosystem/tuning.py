"""Fine-tuning of a tiny language model by TRL, on the device or on the CPU, as ``trainings.py``."""

from __future__ import annotations

import copy
import tempfile
from typing import Any

import torch
from ecosystem import tiny
from ecosystem.trainings import save

STEPS, WORDS = 4, 32


def tokenizer() -> Any:
    """Return a tokenizer with the words w0, w1 and so on."""
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return tiny.tokenizer((f"w{index}" for index in range(WORDS - len(special))), **special)


def model() -> Any:
    return tiny.llama(vocab_size=WORDS, max_position_embeddings=64, bos_token_id=1, eos_token_id=2)


def options(folder: str) -> dict[str, Any]:
    return {
        "output_dir": folder,
        "max_steps": STEPS,
        "per_device_train_batch_size": 4,
        "learning_rate": 0.05,
        "optim": "sgd",
        "logging_steps": 1,
        "report_to": [],
        "save_strategy": "no",
        # The environment sets the precision: TRL's default is refused for unknown devices.
        "bf16": False,
    }


def dataset(*rows: dict[str, str]) -> Any:
    import datasets

    return datasets.Dataset.from_list(list(rows))


def finish(trainer: Any, device: str, file: str) -> None:
    trainer.train()
    assert trainer.model.device.type == device
    if device != "cpu":
        print("fallbacks", list(torch.get_device_module(device).fallback_stats()))
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    save(file, trainer.model, losses)


def by_sft(device: str, file: str) -> None:
    import trl

    data = dataset(*({"text": f"w{i} w{i + 1} w{i + 2} w{i + 3}"} for i in range(16)))
    with tempfile.TemporaryDirectory() as folder:
        arguments = trl.SFTConfig(**options(folder))
        trainer = trl.SFTTrainer(
            model(), args=arguments, train_dataset=data, processing_class=tokenizer()
        )
        finish(trainer, device, file)


def by_dpo(device: str, file: str) -> None:
    import trl

    rows = (
        {"prompt": f"w{i} ", "chosen": f"w{i + 1} w{i + 2}", "rejected": f"w{i + 5}"}
        for i in range(16)
    )
    trained = model()
    with tempfile.TemporaryDirectory() as folder:
        arguments = trl.DPOConfig(**options(folder))
        trainer = trl.DPOTrainer(
            trained,
            ref_model=copy.deepcopy(trained),
            args=arguments,
            train_dataset=dataset(*rows),
            processing_class=tokenizer(),
        )
        finish(trainer, device, file)


def by_grpo(device: str, file: str) -> None:
    """Train on sampled answers, with the device's own random numbers."""
    import trl

    def different_words(completions: list[str], **_: Any) -> list[float]:
        return [float(len(set(completion.split()))) for completion in completions]

    data = dataset(*({"prompt": f"w{i} w{i + 1}"} for i in range(16)))
    with tempfile.TemporaryDirectory() as folder:
        arguments = trl.GRPOConfig(**options(folder), num_generations=2, max_completion_length=6)
        trainer = trl.GRPOTrainer(
            model(),
            args=arguments,
            reward_funcs=different_words,
            train_dataset=data,
            processing_class=tokenizer(),
        )
        finish(trainer, device, file)
