"""Which repairs of PyTorch are made: ``<PREFIX>_WITHOUT_PATCHES`` leaves some out, by name.

For whoever wants to know whether a repair is at fault, and for the tests, which ask each new
PyTorch whether it still needs them.
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
    """Return whether to make the repair of this name."""
    return name not in _left_out()


def refuse_unknown(known: Iterable[str]) -> None:
    """Raise ImportError if the variable names a repair that is none."""
    names = sorted(known)
    for name in sorted(_left_out() - set(names)):
        raise ImportError(f"{VARIABLE}: there is no patch '{name}', only {', '.join(names)}")
