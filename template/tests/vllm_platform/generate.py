"""Generates with vLLM greedily: ``generate.py MODEL OPTIONS``, options of ``LLM`` as JSON.

Additional options: ``adapter``, a folder, and ``pattern``, which texts must match.
"""

from __future__ import annotations

import json
import sys
from typing import Any

# A short one, two with a common prefix, and one that repeats a token.
PROMPTS = [[3, 5, 7, 9], list(range(10, 110)), [*range(10, 90), 4, 4, 4], [11] * 33]


def main(model: str, options: dict[str, Any]) -> None:
    """Print the tokens of two rounds. The second finds cached prefixes of the first."""
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest
    from vllm.platforms import current_platform
    from vllm.sampling_params import StructuredOutputsParams

    adapter, pattern = options.pop("adapter", None), options.pop("pattern", None)
    given: dict[str, Any] = {"temperature": 0, "max_tokens": 24, "logprobs": 5}
    given["detokenize"] = pattern is not None
    if pattern is None:
        given["ignore_eos"] = True
    else:
        given["structured_outputs"] = StructuredOutputsParams(regex=pattern)
    sampling = SamplingParams(**given)
    engine = LLM(
        model,
        **{
            "skip_tokenizer_init": pattern is None,
            "enable_lora": adapter is not None,
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
    request = LoRARequest("adapter", 1, adapter) if adapter is not None else None
    prompts: Any = [{"prompt_token_ids": tokens} for tokens in PROMPTS]
    rounds = [
        engine.generate(each, sampling, use_tqdm=False, lora_request=request)
        for each in (prompts, prompts[1:3])
    ]
    outputs = [answer.outputs[0] for answers in rounds for answer in answers]
    answer = {
        "device": current_platform.device_type,
        "tokens": [list(output.token_ids) for output in outputs],
        "texts": [output.text for output in outputs],
        "first": [
            {token: found.logprob for token, found in output.logprobs[0].items()}
            for output in outputs
        ],
        "found": [each.num_cached_tokens for each in rounds[1]],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
