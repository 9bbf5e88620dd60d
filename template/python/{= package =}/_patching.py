"""Selects the patches of PyTorch: ``<PREFIX>_WITHOUT_PATCHES`` disables patches by name.

Use it to check whether a patch causes a problem. The tests use it to check whether a new PyTorch
release still needs each patch.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable

from ._build import ENV_PREFIX

VARIABLE = f"{ENV_PREFIX}_WITHOUT_PATCHES"


@functools.cache
def _left_out() -> frozenset[str]:
    return frozenset(filter(None, os.environ.get(VARIABLE, "").split(",")))


def is_wanted(name: str) -> bool:
    """Return whether to apply the patch of this name."""
    return name not in _left_out()


def refuse_unknown(known: Iterable[str]) -> None:
    """Raise ImportError if the variable names an unknown patch."""
    names = sorted(known)
    for name in sorted(_left_out() - set(names)):
        raise ImportError(f"{VARIABLE}: there is no patch '{name}', only {', '.join(names)}")
