"""Tiny models of transformers' architectures train as on the CPU, without fallbacks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend

pytestmark = pytest.mark.ecosystem("transformers")

LETTERS = 128
STEPS = 6
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
TEXT = {**SIZES, "vocab_size": LETTERS, "max_position_embeddings": 64}
GROUPED = {**TEXT, "num_key_value_heads": 2}
CERTAIN = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}
WHISPER = {
    **{f"{part}_layers": 2 for part in ("encoder", "decoder")},
    **{f"{part}_attention_heads": 4 for part in ("encoder", "decoder")},
    **{f"{part}_ffn_dim": 64 for part in ("encoder", "decoder")},
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"), 0),
}
IMAGE_MODELS = {"vit", "convnext"}


def architectures() -> dict[str, Callable[[Any], torch.nn.Module]]:
    """Return a factory for each model. It gets the module ``transformers``."""
    return {
        "gpt2": lambda t: t.GPT2LMHeadModel(
            t.GPT2Config(
                vocab_size=LETTERS,
                n_embd=32,
                n_layer=2,
                n_head=4,
                n_positions=64,
                **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0),
            )
        ),
        "llama": lambda t: t.LlamaForCausalLM(t.LlamaConfig(**GROUPED)),
        "mistral": lambda t: t.MistralForCausalLM(t.MistralConfig(**GROUPED, sliding_window=8)),
        "qwen2": lambda t: t.Qwen2ForCausalLM(t.Qwen2Config(**GROUPED)),
        "mixtral": lambda t: t.MixtralForCausalLM(t.MixtralConfig(**GROUPED, num_local_experts=4)),
        "gemma2": lambda t: t.Gemma2ForCausalLM(t.Gemma2Config(**GROUPED, head_dim=8)),
        "bert": lambda t: t.BertForMaskedLM(t.BertConfig(**TEXT, **CERTAIN)),
        "opt": lambda t: t.OPTForCausalLM(
            t.OPTConfig(
                vocab_size=LETTERS,
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                ffn_dim=64,
                max_position_embeddings=64,
                word_embed_proj_dim=32,
                dropout=0,
            )
        ),
        "bloom": lambda t: t.BloomForCausalLM(
            t.BloomConfig(vocab_size=LETTERS, hidden_size=32, n_layer=2, n_head=4)
        ),
        "t5": lambda t: t.T5ForConditionalGeneration(
            t.T5Config(
                vocab_size=LETTERS,
                d_model=32,
                d_kv=8,
                d_ff=64,
                num_layers=2,
                num_heads=4,
                dropout_rate=0,
                decoder_start_token_id=0,
            )
        ),
        "vit": lambda t: t.ViTForImageClassification(
            t.ViTConfig(**SIZES, **CERTAIN, image_size=32, patch_size=8)
        ),
        "whisper": lambda t: t.WhisperForConditionalGeneration(
            t.WhisperConfig(
                vocab_size=LETTERS,
                d_model=32,
                num_mel_bins=16,
                max_source_positions=32,
                max_target_positions=64,
                dropout=0,
                **WHISPER,
            )
        ),
        "mamba": lambda t: t.MambaForCausalLM(
            t.MambaConfig(vocab_size=LETTERS, hidden_size=32, num_hidden_layers=2, state_size=8)
        ),
        "convnext": lambda t: t.ConvNextForImageClassification(
            t.ConvNextConfig(
                hidden_sizes=[16, 32], depths=[1, 1], num_stages=2, image_size=32, patch_size=4
            )
        ),
    }


def inputs(name: str) -> dict[str, torch.Tensor]:
    """Return a batch of two for the model."""
    generator = torch.Generator().manual_seed(0)
    letters = torch.randint(5, LETTERS, (2, 16), generator=generator)
    if name in IMAGE_MODELS:
        pixels = torch.randn(2, 3, 32, 32, generator=generator)
        return {"pixel_values": pixels, "labels": torch.tensor([0, 1])}
    if name == "whisper":
        sound = torch.randn(2, 16, 64, generator=generator)
        return {"input_features": sound, "labels": letters}
    return {"input_ids": letters, "labels": letters}


def train(model: torch.nn.Module, batch: dict[str, torch.Tensor], device: str) -> list[float]:
    """Return the losses of a few steps of a copy of the model."""
    model = copy.deepcopy(model).to(device).train()
    batch = {name: tensor.to(device) for name, tensor in batch.items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.native
@pytest.mark.parametrize("name", architectures())
def test_architectures_train_as_on_the_cpu(name: str) -> None:
    import transformers

    torch.manual_seed(0)
    model, batch = architectures()[name](transformers), inputs(name)
    expected = train(model, batch, "cpu")
    before = backend.fallback_stats()
    assert train(model, batch, DEVICE) == pytest.approx(expected, rel=2e-4)
    assert backend.fallback_stats() == before
    assert expected[-1] < expected[0]
