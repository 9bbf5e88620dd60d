"""Finds the feature modules of this package and collects their declarations.

This module imports the public modules of the package that are not in the core. ``_features.py``
lists the features. A package with a ``__main__`` is a program for ``python -m``, and is not
imported. A feature module defines

``__all__``
    the names that are re-exported into the package, and so into ``torch.<name>``. They replace the
    core's names.
``GENERATED_METHODS: dict[str, object]`` (optional)
    keyword arguments for :func:`torch.utils.generate_methods_for_privateuse1_backend`. Two features
    must not give different values for one argument.
``PATCHES: tuple[str, ...]`` (optional)
    the names of the PyTorch patches that ``setup()`` applies if :func:`._patching.is_wanted`.
``setup() -> None`` (optional)
    called once, after the backend's name and device module are registered. It must not start the
    runtime: ``import torch`` must not use a device.

A feature module is imported while the package is still being imported, before the backend is
registered with PyTorch. It may import ``torch``, ``._C`` and the core's modules. Code that needs
``torch.<name>`` belongs in ``setup()``.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class Extension:
    """One module of the package and its declarations."""

    name: str
    module: ModuleType
    exports: dict[str, object]
    generated_methods: dict[str, object]
    patches: tuple[str, ...]
    setup: Callable[[], None] | None


def extension(module: ModuleType) -> Extension:
    """Return the declarations of ``module``.

    Raises:
        AttributeError: the module has no ``__all__``, or does not define a name listed there.
    """
    return Extension(
        name=module.__name__.rpartition(".")[2],
        module=module,
        exports={name: getattr(module, name) for name in module.__all__},
        generated_methods=dict(getattr(module, "GENERATED_METHODS", {})),
        patches=getattr(module, "PATCHES", ()),
        setup=getattr(module, "setup", None),
    )


def is_program(name: str) -> bool:
    """Return whether the module is a package with a ``__main__``, without importing it."""
    places = importlib.util.find_spec(name).submodule_search_locations  # type: ignore[union-attr]
    return any(Path(place, "__main__.py").is_file() for place in places or ())


def discover(package: ModuleType, core: Iterable[ModuleType]) -> list[Extension]:
    """Return the core's modules in the order given, then the feature modules sorted by name.

    Args:
        package: the package to search.
        core: the modules of every project. They are first, so that features can replace their
            names.
    """
    modules = list(core)
    known = {module.__name__ for module in modules}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        qualified = f"{package.__name__}.{info.name}"
        if not info.name.startswith("_") and qualified not in known and not is_program(qualified):
            known.add(qualified)
            modules.append(importlib.import_module(qualified))
    return [extension(module) for module in modules]


def generated_methods(extensions: Iterable[Extension]) -> dict[str, object]:
    """Merge the arguments for ``generate_methods_for_privateuse1_backend``.

    Raises:
        ValueError: two modules give different values for one argument.
    """
    merged: dict[str, object] = {}
    owner: dict[str, str] = {}
    for item in extensions:
        for key, value in item.generated_methods.items():
            if key in merged and merged[key] != value:
                raise ValueError(
                    f"{owner[key]} and {item.name} disagree on GENERATED_METHODS[{key!r}]"
                )
            merged[key] = value
            owner[key] = item.name
    return merged
