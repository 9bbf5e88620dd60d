"""Support for other libraries, with one module for each.

None of the libraries is a dependency of the package, and none is imported with it. A library that
looks up its device during its own import gets it from :data:`ON_IMPORT`. For the other libraries,
import the module here that you need.
"""

from __future__ import annotations

import importlib
from functools import partial

from .._imports import when_imported

__all__: list[str] = []

ON_IMPORT = {"deepspeed.accelerator.real_accelerator": "deepspeed"}
"""Maps a library's module to the module here whose ``install()`` runs after its import."""


def setup() -> None:
    """Register the functions to call when a program imports a library."""
    for library, module in ON_IMPORT.items():
        when_imported(library, partial(_install, module))


def _install(module: str) -> None:
    importlib.import_module(f"{__name__}.{module}").install()
