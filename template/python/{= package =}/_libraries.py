"""Loads the shared libraries in other Python packages that the device library needs."""

from __future__ import annotations

import importlib

from ._build import DEVICE_PACKAGES, NAME


def load() -> None:
    """Import the packages, which load their shared libraries on import.

    The loader then finds a library by its name when the device library needs it. The rpath of the
    device library has only folders relative to its own. In an environment on top of another one,
    the packages can be in other folders.

    Raises:
        ImportError: a package is not installed; the message names it.
    """
    for package in DEVICE_PACKAGES:
        try:
            importlib.import_module(package)
        except ModuleNotFoundError as error:
            raise ImportError(
                f"the device library of {NAME} was built with {package}, which is not installed: "
                f"pip install {package.replace('_', '-')}"
            ) from error
