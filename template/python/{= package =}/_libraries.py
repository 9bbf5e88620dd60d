"""Loads what the device library needs of other Python packages, wherever Python finds them."""

from __future__ import annotations

import importlib

from ._build import DEVICE_PACKAGES, NAME


def load() -> None:
    """Import the packages, which load their shared libraries as they are imported.

    The loader then finds a library by its name when the device library needs it. The device
    library names folders beside its own only, and in an environment on top of another the packages
    lie elsewhere.

    Raises:
        ImportError: naming the package that is not installed.
    """
    for package in DEVICE_PACKAGES:
        try:
            importlib.import_module(package)
        except ModuleNotFoundError as error:
            raise ImportError(
                f"the device library of {NAME} was built with {package}, which is not installed: "
                f"pip install {package.replace('_', '-')}"
            ) from error
