"""Code that runs when a module of another library is imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from backend import PACKAGE

imports: Any = importlib.import_module(f"{PACKAGE}._imports")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package that no other test imports."""
    name = "library_that_is_awaited"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import part\n")
    (folder / "part.py").write_text("import sys\nwords = getattr(sys, 'words_for_a_test', [])\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]
    imports._finder.actions.pop(f"{name}.part", None)


def test_the_action_runs_once_after_the_import(library: str) -> None:
    acts: list[str] = []
    for word in ("first", "second"):
        imports.when_imported(
            f"{library}.part",
            lambda word=word: acts.append(word + str(sys.modules[f"{library}.part"].words)),
        )
    assert not acts
    module = importlib.import_module(library)
    assert acts == ["first[]", "second[]"]
    importlib.reload(module.part)
    assert acts == ["first[]", "second[]"]
    imports.when_imported(f"{library}.part", lambda: acts.append("at once"))
    assert acts[2:] == ["at once"]


def test_find_spec_does_not_run_the_action(library: str) -> None:
    acts: list[int] = []
    imports.when_imported(library, lambda: acts.append(1))
    assert find_spec(library) is not None
    assert not acts
    importlib.import_module(library)
    assert acts == [1]


def test_a_failed_import_does_not_run_the_action(library: str, tmp_path: Path) -> None:
    acts: list[int] = []
    part = tmp_path / library / "part.py"
    part.write_text("raise ImportError('not yet')")
    imports.when_imported(f"{library}.part", lambda: acts.append(1))
    with pytest.raises(ImportError, match="not yet"):
        importlib.import_module(library)
    assert not acts
    part.write_text("words = []  # now")
    importlib.invalidate_caches()
    importlib.import_module(library)
    assert acts == [1]


def test_the_finder_is_removed_when_it_is_not_needed(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    finder = imports._Finder()
    monkeypatch.setattr(imports, "_finder", finder)
    before = list(sys.meta_path)
    imports.when_imported(library, lambda: None)
    assert sys.meta_path == [finder, *before]
    importlib.import_module(library)
    assert sys.meta_path == before


def test_a_missing_module_is_not_found(library: str) -> None:
    imports.when_imported(f"{library}.part", lambda: None)
    imports.when_imported(f"{library}.nowhere", lambda: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{library}.nowhere")
    imports._finder.actions.pop(f"{library}.nowhere")
