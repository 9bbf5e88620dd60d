"""Tiny models of each kind, with weights large enough that tokens differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

COMMON = {
    "vocab_size": 512,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "initializer_range": 0.2,
}
LLAMA = COMMON | {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "tie_word_embeddings": False,
}
WINDOWS = {"sliding_window": 16}
GEMMA = (
    LLAMA
    | WINDOWS
    | {"query_pre_attn_scalar": 64, "num_hidden_layers": 4, "tie_word_embeddings": True}
)
GPT = {"n_positions": 512, "n_embd": 128, "n_layer": 2, "n_head": 2}
OPT = {
    "hidden_size": 128,
    "word_embed_proj_dim": 128,
    "ffn_dim": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "init_std": 0.2,
    "pad_token_id": 0,
}
EXPERTS = {"num_experts_per_tok": 2}

# The class of the configuration, and what it is given.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", LLAMA),
    "qwen2": ("Qwen2Config", LLAMA | {"hidden_size": 256}),
    "qwen3": ("Qwen3Config", LLAMA),
    "mistral": ("MistralConfig", LLAMA | WINDOWS),
    "gemma2": ("Gemma2Config", GEMMA),
    "gemma3": ("Gemma3TextConfig", GEMMA),
    "mixtral": ("MixtralConfig", LLAMA | EXPERTS | {"num_local_experts": 4}),
    "gpt2": ("GPT2Config", COMMON | GPT),
    "opt": ("OPTConfig", COMMON | OPT),
    "wide_head": ("LlamaConfig", LLAMA | {"head_dim": 1024}),
}


def save(name: str, folder: Path) -> None:
    """Write a checkpoint, as of a model that was trained."""
    import transformers

    kind, options = MODELS[name]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(
        getattr(transformers, kind)(**options), dtype=torch.float32
    )
    model.save_pretrained(folder)
