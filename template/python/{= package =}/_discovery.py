"""Finds the features of this package and adds what they bring.

A feature is one public module of this package. There is no list of them: whatever module is
present and is not part of the core is a feature, so adding or removing a file adds or removes it.
A package with a ``__main__`` is a program, which ``python -m`` runs, and is not imported.
A feature module offers

``__all__``
    the names that are re-exported into the package, and so into ``torch.<name>``. A name that the
    core has already is replaced by the feature's.
``GENERATED_METHODS: dict[str, object]`` (optional)
    keyword arguments for :func:`torch.utils.generate_methods_for_privateuse1_backend`. Two features
    may not give different values for one argument.
``PATCHES: tuple[str, ...]`` (optional)
    the names of the repairs of PyTorch that ``setup()`` makes if :func:`._patching.is_wanted`.
``setup() -> None`` (optional)
    called once, after PyTorch knows the backend's name and its device module. It must not start the
    runtime: no device may be touched while ``import torch`` runs.

A feature module is imported while the package is still being imported, before the backend is
registered with PyTorch: it may import ``torch``, ``._C`` and the core's modules, but must leave to
``setup()`` whatever needs ``torch.<name>`` to exist.
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
    """One module of the package and what it declares."""

    name: str
    module: ModuleType
    exports: dict[str, object]
    generated_methods: dict[str, object]
    patches: tuple[str, ...]
    setup: Callable[[], None] | None


def extension(module: ModuleType) -> Extension:
    """Read what ``module`` declares.

    Raises:
        AttributeError: the module has no ``__all__``, or lists a name that it does not have.
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
    """Return the core's modules in the order given, then every feature module by name.

    Args:
        package: where to look.
        core: the modules that are always there; they come first so that features can replace
            what they bring.
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
