"""vLLM's engine on this device: the tokens that its CPU platform generates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backend import DEVICE

pytestmark = pytest.mark.ecosystem("vllm", "transformers")

Checkpoint = Callable[[str], Path]
Generate = Callable[..., dict[str, Any]]

KINDS = ["qwen2", "qwen3", "mistral", "gemma2", "gemma3", "mixtral", "gpt2", "opt"]


def test_a_model_generates_what_it_generates_on_the_cpu(
    checkpoint: Checkpoint, generate: Generate
) -> None:
    model = checkpoint("llama")
    expected, actual = generate(model, cpu=True), generate(model)
    assert (expected["device"], actual["device"]) == ("cpu", DEVICE)
    assert actual["tokens"] == expected["tokens"]
    # Blocks of the first round's prompts are found again.
    assert all(actual["found"])


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_other_kinds(kind: str, checkpoint: Checkpoint, generate: Generate) -> None:
    model = checkpoint(kind)
    assert generate(model)["tokens"] == generate(model, cpu=True)["tokens"]


def test_prompts_in_chunks(checkpoint: Checkpoint, generate: Generate) -> None:
    model = checkpoint("llama")
    chunks = {"max_num_batched_tokens": 48, "max_num_seqs": 4}
    assert generate(model, **chunks)["tokens"] == generate(model, cpu=True)["tokens"]
