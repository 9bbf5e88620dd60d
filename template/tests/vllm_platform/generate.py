"""Generates with vLLM greedily: ``generate.py MODEL OPTIONS``, options of ``LLM`` as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

# One short, one with a chunk of it in common with the next, one of one token only.
PROMPTS = [[3, 5, 7, 9], list(range(10, 110)), [*range(10, 90), 4, 4, 4], [11] * 33]


def main(model: str, options: dict[str, Any]) -> None:
    """Print the tokens of two rounds, of which the second finds prefixes of the first."""
    from vllm import LLM, SamplingParams
    from vllm.platforms import current_platform

    sampling = SamplingParams(
        **{"temperature": 0, "max_tokens": 24, "ignore_eos": True, "detokenize": False}
        | options.pop("sampling", {})
    )
    engine = LLM(
        model,
        **{
            "skip_tokenizer_init": True,
            "dtype": "float32",
            "enforce_eager": True,
            "max_model_len": 256,
            "max_num_seqs": 8,
            "max_num_batched_tokens": 256,
            "seed": 0,
            "kv_cache_memory_bytes": 1 << 27,
        }
        | options,
    )
    prompts: Any = [{"prompt_token_ids": tokens} for tokens in PROMPTS]
    rounds = [prompts, prompts[1:3]]
    answers = [engine.generate(each, sampling, use_tqdm=False) for each in rounds]
    tokens = [list(answer.outputs[0].token_ids) for each in answers for answer in each]
    found = [answer.num_cached_tokens for answer in answers[1]]
    print(json.dumps({"device": current_platform.device_type, "tokens": tokens, "found": found}))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
