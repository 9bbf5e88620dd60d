"""torchtitan trains its debug model on two devices, in every way from the same parameters."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from ecosystem.processes import has_collectives, launch
from ecosystem.tiny import tokenizer
from support import needs, needs_two_devices

pytestmark = [
    pytest.mark.ecosystem("transformers", "torchtitan.train"),
    has_collectives,
    needs(torch.float32, torch.bfloat16),
]

WORDS = 61
WAYS = {
    "one": (1, 4, []),
    "tensor parallel": (2, 4, ["--parallelism.tensor_parallel_degree=2"]),
    "sharded": (2, 2, []),
    "replicated": (
        2,
        2,
        [
            "--parallelism.data_parallel_replicate_degree=2",
            "--parallelism.data_parallel_shard_degree=1",
        ],
    ),
}
"""The number of processes, the rows of each, and torchtitan's arguments."""


def prepare(folder: Path) -> None:
    """Write a tokenizer and a text of few words to the paths that torchtitan's own tests use."""
    assets = folder / "tests" / "assets"
    special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    tokenizer((f"w{i}" for i in range(WORDS)), **special).save_pretrained(assets / "tokenizer")
    (assets / "c4_test").mkdir()
    rows = [" ".join(f"w{i * j % WORDS}" for j in range(40)) for i in range(1, 200)]
    (assets / "c4_test" / "data.json").write_text("\n".join(json.dumps({"text": r}) for r in rows))


def train(folder: Path, processes: int, arguments: list[str]) -> str:
    program = [
        *("-m", "torchtitan.train", "--model.name=llama3", "--model.flavor=debugmodel"),
        *("--model.hf_assets_path=tests/assets/tokenizer", "--training.dataset=c4_test"),
        *("--training.steps=4", "--training.seq_len=64", "--metrics.log_freq=1"),
        *("--optimizer.lr=8e-4", "--lr_scheduler.warmup_steps=2", "--checkpoint.enable"),
        *arguments,
    ]
    environment = {"HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}
    return launch(program, processes=processes, environment=environment, folder=folder)


def losses(folder: Path, way: str) -> list[float]:
    """Return the loss of each step, starting from the seed checkpoint."""
    processes, rows, arguments = WAYS[way]
    dump = folder / way
    shutil.copytree(folder / "seed" / "checkpoint", dump / "checkpoint")
    output = train(
        folder,
        processes,
        [f"--job.dump_folder={dump}", f"--training.local_batch_size={rows}", *arguments],
    )
    assert "Loading the checkpoint from" in output
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    found = dict(re.findall(r"step:\s+(\d+)\s+loss:\s+([\d.]+)", plain))
    return [float(found[str(step)]) for step in range(1, 5)]


@needs_two_devices
def test_parallel_and_single_process_training_have_equal_losses(tmp_path: Path) -> None:
    prepare(tmp_path)
    seed = ["--checkpoint.create_seed_checkpoint", "--parallelism.data_parallel_shard_degree=1"]
    train(tmp_path, 1, [f"--job.dump_folder={tmp_path / 'seed'}", *seed])
    found = {way: losses(tmp_path, way) for way in WAYS}
    assert found["one"][-1] < found["one"][0]
    # Pairs with the same rows. Sharded runs compute in bfloat16, and in another order.
    assert found["tensor parallel"] == pytest.approx(found["one"], rel=1e-3)
    assert found["sharded"] == pytest.approx(found["replicated"], rel=1e-3)
