"""Tiny models of each kind, with large weights, so that tokens differ."""

from __future__ import annotations

import json
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

# The class of the configuration, and its arguments.
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


# How a checkpoint of compressed-tensors stores the weights and inputs of linear layers.
CHANNELS = {"strategy": "channel", "symmetric": True, "dynamic": False}
ROWS = {"strategy": "token", "symmetric": True, "dynamic": True}
WHOLE = {"strategy": "tensor", "symmetric": True}
INT8 = {"num_bits": 8, "type": "int"}
INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "dynamic": False}
FLOAT8 = {"num_bits": 8, "type": "float"}
# The name of the format, the weights, the inputs.
FORMATS: dict[str, tuple[str, dict[str, Any], dict[str, Any] | None]] = {
    "int8": ("int-quantized", INT8 | CHANNELS, INT8 | ROWS),
    "int8_shifted": ("int-quantized", INT8 | CHANNELS, INT8 | ROWS | {"symmetric": False}),
    "int8_static": (
        "int-quantized",
        INT8 | WHOLE | {"dynamic": False},
        INT8 | WHOLE | {"dynamic": False},
    ),
    "int4": ("pack-quantized", INT4 | {"symmetric": True}, None),
    "int4_shifted": ("pack-quantized", INT4 | {"symmetric": False}, None),
    "float8": ("float-quantized", FLOAT8 | CHANNELS, FLOAT8 | ROWS),
    "float8_whole": (
        "float-quantized",
        FLOAT8 | WHOLE | {"dynamic": False},
        FLOAT8 | WHOLE | {"dynamic": True},
    ),
}


def packed(numbers: torch.Tensor) -> torch.Tensor:
    """Return eight unsigned numbers of a row in each int32, the first in the low bits."""
    eights = numbers.long().unflatten(-1, (-1, 8)) << torch.arange(0, 32, 4)
    return eights.sum(-1).to(torch.uint32).view(torch.int32)


def quantized(name: str, weight: torch.Tensor, form: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a weight in a checkpoint of this form."""
    _, weights, inputs = FORMATS[form]
    parts: dict[str, torch.Tensor] = {}
    if weights["num_bits"] == 4:
        groups = weight.unflatten(1, (-1, weights["group_size"]))
        least, most = groups.amin(-1), groups.amax(-1)
        if weights["symmetric"]:
            scale, zero = groups.abs().amax(-1) / 7.5, torch.full_like(least, 8.0)
        else:
            scale = (most - least) / 15
            zero = (-least / scale).round().clamp(0, 15)
            parts["weight_zero_point"] = packed(zero.t().contiguous()).t().contiguous()
        numbers = (groups / scale[..., None] + zero[..., None]).round().clamp(0, 15).flatten(1)
        parts |= {
            "weight_packed": packed(numbers),
            "weight_scale": scale,
            "weight_shape": torch.tensor(weight.shape),
        }
    else:
        is_float = weights["type"] == "float"
        limit = torch.finfo(torch.float8_e4m3fn).max if is_float else 127.0
        is_whole = weights["strategy"] == "tensor"
        scale = (weight.abs().max().view(1) if is_whole else weight.abs().amax(1, True)) / limit
        numbers = weight / scale
        kept = numbers.to(torch.float8_e4m3fn) if is_float else numbers.round().to(torch.int8)
        parts = {"weight": kept, "weight_scale": scale}
        if inputs is not None and not inputs["dynamic"]:
            parts["input_scale"] = torch.tensor([0.05])
    return {f"{name}.{part}": tensor for part, tensor in parts.items()}


def restored(parts: dict[str, torch.Tensor], form: str) -> torch.Tensor:
    """Return a weight dequantized from its tensors."""
    _, weights, _ = FORMATS[form]
    by_name = {name.rpartition(".")[2]: tensor for name, tensor in parts.items()}
    scale = by_name["weight_scale"]
    if weights["num_bits"] == 8:
        return by_name["weight"].float() * scale
    zero: torch.Tensor | int = 8
    if not weights["symmetric"]:
        zero = unpacked(by_name["weight_zero_point"].t().contiguous()).t().unsqueeze(-1)
    groups = unpacked(by_name["weight_packed"]).unflatten(1, (-1, weights["group_size"]))
    return ((groups - zero) * scale[..., None]).flatten(1)


def unpacked(words: torch.Tensor) -> torch.Tensor:
    """Return the argument of :func:`packed`."""
    return (words[..., None] >> torch.arange(0, 32, 4) & 15).flatten(-2)


def quantize(folder: Path, form: str) -> None:
    """Turn a checkpoint into one of compressed-tensors, except embeddings and the last layer.

    ``int4_plain`` is a checkpoint of floating-point numbers that are equal to those of ``int4``.
    """
    from safetensors.torch import load_file, save_file

    plain, form = form.endswith("_plain"), form.removesuffix("_plain")
    file, config = folder / "model.safetensors", folder / "config.json"
    tensors: dict[str, torch.Tensor] = {}
    for name, tensor in load_file(file).items():
        layer = name.removesuffix(".weight")
        parts = quantized(layer, tensor, form) if layer.endswith("_proj") else {name: tensor}
        if plain and layer.endswith("_proj"):
            parts = {name: restored(parts, form)}
        tensors |= parts
    save_file(tensors, file, metadata={"format": "pt"})
    if plain:
        return
    kind, weights, inputs = FORMATS[form]
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    settings = json.loads(config.read_text())
    settings["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": kind,
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
    }
    config.write_text(json.dumps(settings))


def save_tokenizer(folder: Path) -> None:
    """Write a tokenizer of single bytes, which can encode every text."""
    import tokenizers
    import transformers

    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = ["<pad>", "<s>", "</s>", *alphabet]
    words += [f"<{i}>" for i in range(len(words), COMMON["vocab_size"])]
    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    ).save_pretrained(folder)


def save_adapter(folder: Path) -> None:
    """Write a LoRA adapter for the attention of `llama`."""
    from safetensors.torch import save_file

    torch.manual_seed(1)
    rank, hidden, width = 8, LLAMA["hidden_size"], LLAMA["num_attention_heads"] * LLAMA["head_dim"]
    tensors = {}
    for layer in range(LLAMA["num_hidden_layers"]):
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        tensors[f"{name}.lora_A.weight"] = torch.randn(rank, hidden) * 0.2
        tensors[f"{name}.lora_B.weight"] = torch.randn(width, rank) * 0.2
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": 16, "target_modules": ["q_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))


def save(name: str, folder: Path) -> None:
    """Write a checkpoint; ``llama-int8`` is a quantized one."""
    import transformers

    name, _, form = name.partition("-")
    kind, options = MODELS[name]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(
        getattr(transformers, kind)(**options), dtype=torch.float32
    )
    model.save_pretrained(folder)
    save_tokenizer(folder)
    if form:
        quantize(folder, form)
