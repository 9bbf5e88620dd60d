"""Programs about the allocator, which run in processes of their own."""

from __future__ import annotations

from backend import DEVICE
from support import run_python

MEMORY_PRELUDE = f"""
import gc, torch
backend = torch.{DEVICE}
MIB = 2**20

def take(size):
    return torch.empty(size // 4, device="{DEVICE}")

def figure(name):
    return backend.memory_stats()[name]
"""
"""First lines of programs about the allocator. They define ``take`` and ``figure``."""


def run_with_settings(settings: str, code: str) -> None:
    """Run ``code`` after the prelude with PYTORCH_ALLOC_CONF."""
    run_python(MEMORY_PRELUDE + code, {"PYTORCH_ALLOC_CONF": settings})
