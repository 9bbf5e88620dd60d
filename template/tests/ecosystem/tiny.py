"""Tiny language models and tokenizers that are built without a download."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


def llama(**options: int) -> Any:
    """Return a language model of two layers, with the same weights each time."""
    import transformers

    sizes = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "pad_token_id": 0,
    }
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes | options))


def tokenizer(words: Iterable[str], **special: str) -> Any:
    """Return a tokenizer of transformers with the words of ``special``, and then ``words``."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    all_words = dict.fromkeys([*special.values(), *words])
    numbered = {word: index for index, word in enumerate(all_words)}
    made = Tokenizer(models.WordLevel(numbered, unk_token=special["unk_token"]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, **special)
