"""What the backend could not do itself."""

from __future__ import annotations

from . import _C

__all__ = ["fallback_stats", "reset_fallback_stats"]


def fallback_stats() -> dict[str, int]:
    """Return how often each operator ran on the CPU instead, by operator and overload."""
    return _C.fallback_stats()


def reset_fallback_stats() -> None:
    """Start counting again from zero."""
    _C.reset_fallback_stats()
