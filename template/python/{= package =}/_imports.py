"""Runs code of ours when a module of PyTorch or of another library is imported for the first time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_imported(name: str, act: Callable[[], None]) -> None:
    """Call ``act`` once, after the module ``name`` has been imported: at once, or later, or never.

    Much of PyTorch is imported when it is used first, as it takes seconds, and other libraries may
    be absent. What is to be added to such a module can wait until then. Nothing is imported here.
    """
    if name in sys.modules:
        act()
        return
    _finder.actions.setdefault(name, []).append(act)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _Finder(MetaPathFinder):
    """Leaves the search for a module to the others, and acts after its code has run.

    It stays until then: a search alone, as for whether a library is installed, imports nothing.
    """

    def __init__(self) -> None:
        self.actions: dict[str, list[Callable[[], None]]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.actions:
            return None
        for finder in sys.meta_path:
            # Finders of older kinds have no such method, and the import system passes them over.
            search = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = search(fullname, path, target) if search else None
            if spec is not None:
                if spec.loader is not None:
                    self._follow(fullname, spec.loader)
                return spec
        return None

    def _follow(self, name: str, loader: Loader) -> None:
        execute = loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            for act in self.actions.pop(name, ()):
                act()
            if not self.actions and self in sys.meta_path:
                sys.meta_path.remove(self)

        loader.exec_module = execute_and_act  # type: ignore[method-assign]


_finder = _Finder()
