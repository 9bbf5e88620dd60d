"""Calls functions when a module of PyTorch or of another library is imported for the first time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_imported(name: str, act: Callable[[], None]) -> None:
    """Call ``act`` once, after the module ``name`` is imported, or now if it is already imported.

    This imports nothing. PyTorch imports many modules at first use because they take seconds, and
    other libraries may not be installed, so extensions of such modules are registered here.
    """
    if name in sys.modules:
        act()
        return
    _finder.actions.setdefault(name, []).append(act)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _Finder(MetaPathFinder):
    """Delegates the search for a module to the other finders, and acts after the module has run.

    It stays registered until then, as a search without an import can happen first.
    """

    def __init__(self) -> None:
        self.actions: dict[str, list[Callable[[], None]]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.actions:
            return None
        for finder in sys.meta_path:
            # Old finders have no find_spec, and the import system skips them.
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
