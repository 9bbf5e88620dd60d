"""Support for other libraries, with one module for each.

None of the libraries is a dependency of the package, and none is imported with it. Those that have
a place for a device, but ask for it while they are imported, find it filled: see :data:`ON_IMPORT`.
The modules of the others are imported by who needs them.
"""

from __future__ import annotations

import importlib
from functools import partial

from .._imports import when_imported

__all__: list[str] = []

ON_IMPORT = {"deepspeed.accelerator.real_accelerator": "deepspeed"}
"""By a library's module, the one of this package whose ``install()`` follows its import."""


def setup() -> None:
    """Arrange for the libraries that a program may import."""
    for library, module in ON_IMPORT.items():
        when_imported(library, partial(_install, module))


def _install(module: str) -> None:
    importlib.import_module(f"{__name__}.{module}").install()
