"""vLLM's engine on this device generates the tokens of its CPU platform."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backend import DEVICE

pytestmark = pytest.mark.ecosystem("vllm", "transformers")

Checkpoint = Callable[[str], Path]
Generate = Callable[..., dict[str, Any]]

KINDS = ["qwen2", "qwen3", "mistral", "gemma2", "gemma3", "mixtral", "gpt2", "opt"]


def test_a_model_generates_the_tokens_of_the_cpu_platform(
    checkpoint: Checkpoint, generate: Generate
) -> None:
    model = checkpoint("llama")
    expected, actual = generate(model, cpu=True), generate(model)
    assert (expected["device"], actual["device"]) == ("cpu", DEVICE)
    assert actual["tokens"] == expected["tokens"]
    # The second round uses cached blocks of the first round.
    assert all(actual["found"])


def mean_error(actual: list[dict[str, float]], expected: list[dict[str, float]]) -> float:
    """Return the mean difference of log probabilities, for tokens that both contain."""
    errors = [
        abs(mine[token] - theirs[token])
        for mine, theirs in zip(actual, expected, strict=True)
        for token in mine.keys() & theirs.keys()
    ]
    assert len(errors) >= 3 * len(actual)
    return sum(errors) / len(errors)


@pytest.mark.parametrize("kind", KINDS)
def test_other_architectures_generate_the_tokens_of_the_cpu_platform(
    kind: str, checkpoint: Checkpoint, generate: Generate
) -> None:
    model = checkpoint(kind)
    assert generate(model)["tokens"] == generate(model, cpu=True)["tokens"]


def test_chunked_prefill_generates_the_same_tokens(
    checkpoint: Checkpoint, generate: Generate
) -> None:
    model = checkpoint("llama")
    chunks = {"max_num_batched_tokens": 48, "max_num_seqs": 4}
    assert generate(model, **chunks)["tokens"] == generate(model, cpu=True)["tokens"]


@pytest.mark.parametrize("form", ["int8", "int8_shifted", "float8"])
def test_quantized_checkpoints_generate_the_tokens_of_the_cpu_platform(
    form: str, checkpoint: Checkpoint, generate: Generate
) -> None:
    model = checkpoint(f"llama-{form}")
    assert generate(model)["tokens"] == generate(model, cpu=True)["tokens"]


@pytest.mark.parametrize("form", ["int4", "int4_shifted"])
def test_weights_of_4_bits_generate_the_tokens_of_plain_weights(
    form: str, checkpoint: Checkpoint, generate: Generate
) -> None:
    """vLLM's CPU platform supports them only in bfloat16. It runs with equal plain weights."""
    expected = generate(checkpoint(f"llama-{form}_plain"), cpu=True)
    assert generate(checkpoint(f"llama-{form}"))["tokens"] == expected["tokens"]


@pytest.mark.parametrize(
    ("form", "other", "most"),
    [("int8_static", "int8_static", 0.05), ("float8_whole", "float8_whole_plain", 0.5)],
)
def test_per_tensor_scales_give_similar_probabilities(
    form: str, other: str, most: float, checkpoint: Checkpoint, generate: Generate
) -> None:
    """Tokens may differ, because a different rounding of one number has large effects.

    vLLM's CPU platform has no float8 with one scale for parts of a layer. Its inputs are plain, so
    that the difference is the error of float8.
    """
    actual = generate(checkpoint(f"llama-{form}"))["first"]
    expected = generate(checkpoint(f"llama-{other}"), cpu=True)["first"]
    assert mean_error(actual, expected) < most


def test_a_float8_cache_gives_similar_probabilities(
    checkpoint: Checkpoint, generate: Generate
) -> None:
    """The reference is vLLM's CPU platform without float8, which would round more."""
    model = checkpoint("llama")
    actual = generate(model, kv_cache_dtype="fp8")["first"]
    assert mean_error(actual, generate(model, cpu=True)["first"]) < 0.3
    assert actual != generate(model)["first"]


def test_an_adapter_generates_the_tokens_of_the_cpu_platform(
    checkpoint: Checkpoint, generate: Generate, adapter: Path
) -> None:
    model, options = checkpoint("llama"), {"adapter": str(adapter)}
    expected = generate(model, cpu=True, **options)
    assert expected["tokens"] != generate(model, cpu=True)["tokens"]
    assert generate(model, **options)["tokens"] == expected["tokens"]


def test_guided_decoding_gives_texts_that_match_the_pattern(
    checkpoint: Checkpoint, generate: Generate
) -> None:
    pattern = "(yes|no), [0-9]{2}"
    texts = generate(checkpoint("llama"), pattern=pattern)["texts"]
    # The rest of a prompt that ends within a character comes first.
    assert all(re.search(f"{pattern}$", text) for text in texts), texts


def test_tensor_parallel_generates_the_same_tokens(
    checkpoint: Checkpoint, generate: Generate
) -> None:
    model = checkpoint("llama")
    expected = generate(model, cpu=True)["tokens"]
    assert generate(model, tensor_parallel_size=2)["tokens"] == expected
