"""Errors of one sentence for unsupported models and options, before memory is allocated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from backend import DEVICE, PACKAGE
from support import run_python

pytestmark = pytest.mark.ecosystem("vllm", "transformers")

Checkpoint = Callable[[str], Path]
Refusal = Callable[..., str]


def test_a_model_that_does_not_fit_is_refused(checkpoint: Checkpoint, refusal: Refusal) -> None:
    said = refusal(checkpoint("llama"), gpu_memory_utilization=1e-4)
    assert "that vLLM may use of" in said


def test_more_devices_than_available_are_refused(checkpoint: Checkpoint, refusal: Refusal) -> None:
    said = refusal(checkpoint("llama"), tensor_parallel_size=512)
    assert "is set to use 512 devices" in said or "must be divisible" in said


def test_an_attention_backend_of_another_device_is_refused(
    checkpoint: Checkpoint, refusal: Refusal
) -> None:
    said = refusal(checkpoint("llama"), attention_backend="FLASH_ATTN")
    assert "has only its own attention backend, not FLASH_ATTN" in said


@pytest.mark.parametrize(
    ("kernel", "dtype"), [("Int8Linear", "int8"), ("Float8Linear", "float8_e4m3fn")]
)
def test_quantized_kernels_are_unsupported_without_their_dtype(kernel: str, dtype: str) -> None:
    code = f"""
        from {PACKAGE}.vllm import linear
        linear.backend.dtype_support = lambda dtype: "unsupported"
        print(linear.{kernel}.is_supported())
    """
    answer = f"(False, 'needs torch.{dtype}, which {DEVICE} does not support')"
    assert run_python(code).stdout.splitlines()[-1] == answer
