"""Wrong arguments of native overloads, one at a time: no crash, no access to other memory, and the
CPU's result. The gate tests a few operators, and test_every_argument.py all."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from backend import ENV_PREFIX, backend
from torch.testing._internal.common_methods_invocations import op_db

OPERATORS = [
    *random.Random(47).sample(sorted({op.full_name for op in op_db}), 6),
    *("fft.irfft", "nn.functional.group_norm", "nn.functional.avg_pool2d"),
]
"""The operators that the gate tests."""

OWN = (
    "attention_with_cache|rotary_embedding|reshape_and_cache|top_k_top_p_sample|_scaled_mm$"
    "|_fused_adam_$|_thnn_fused_lstm_cell$|convolution_overrideable|_cummax_helper"
)
"""The overloads of argument_bases.py that the gate tests."""


def findings(*arguments: str) -> list[str]:
    """Return the findings that are not declared."""
    done = subprocess.run(
        [sys.executable, "-m", "conformance.arguments", *arguments],
        cwd=Path(__file__).parents[1],
        env=os.environ
        | {
            f"{ENV_PREFIX}_DEVICE_LAYERS": "validate" if hasattr(backend, "device_layers") else "",
            f"{ENV_PREFIX}_FALLBACK": "silent",
            f"{ENV_PREFIX}_SIMULATOR_MEMORY": str(1 << 30),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert any(line.startswith("# ") for line in lines), "no call was tried"
    return [line for line in lines if "\t" in line and not line.startswith("# ")]


def test_wrong_arguments_of_some_operators() -> None:
    assert findings(*OPERATORS) == []


def test_wrong_arguments_of_the_backends_own_operators() -> None:
    assert findings("--others", "--overloads", OWN) == []
