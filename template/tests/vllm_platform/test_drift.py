"""The parts of vLLM that this package uses, and their changes in another release."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from backend import PACKAGE
from support import run_python

drift: Any = importlib.import_module(f"{PACKAGE}.vllm.drift")

BASE = """
from abc import abstractmethod
from .parts import Part

class Base:
    def kept(self, x): ...
    def turned(self, x, y=1): ...

class Middle(Base):
    def gone(self): ...
"""
PARTS = "class Part:\n    limit = 1\ndef make(count): ...\n"
USED = [
    ("vllm.base", "Middle", ("kept", "turned", "gone", "own")),
    ("vllm.base", "Part", ()),
    ("vllm.parts", "make", ()),
]
CHANGES = [
    ("turned(self, x, y=1)", "turned(self, x, *, y=1)"),
    ("    def gone(self): ...\n", "    @abstractmethod\n    def wanted(self, z): ...\n"),
    ("    def kept", "    def more(self): ...\n    def kept"),
]


def write(folder: Path, base: str, parts: str) -> Path:
    (folder / "vllm/platforms").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "base": base,
        "parts": parts,
        "platforms/interface": "",
    }.items():
        (folder / f"vllm/{name}.py").write_text(text)
    return folder


def uses() -> list[Any]:
    return [drift.Use(module, name, frozenset(methods)) for module, name, methods in USED]


def test_equal_sources_have_no_differences(tmp_path: Path) -> None:
    trees = [write(tmp_path / name, BASE, PARTS) for name in ("one", "other")]
    assert drift.compare(*trees, uses()) == []


def test_differences_are_found_in_folders_and_in_wheels(tmp_path: Path) -> None:
    changed = BASE
    for before, after in CHANGES:
        assert before in changed
        changed = changed.replace(before, after)
    one = write(tmp_path / "one", BASE, PARTS)
    other = write(tmp_path / "other", changed, PARTS.replace("make(count)", "make(count, kind)"))
    wheel = tmp_path / "vllm-99-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in other.rglob("*.py"):
            archive.write(file, file.relative_to(other))
    for tree in (other, zipfile.Path(wheel)):
        found = {(item.kind, item.name, item.after) for item in drift.compare(one, tree, uses())}
        assert found == {
            ("changed", "Middle.turned", "turned(self, x, *, y=1)"),
            ("gone", "Middle.gone", ""),
            ("new", "Middle.wanted", "wanted(self, z)"),
            ("changed", "make", "make(count, kind)"),
        }


def test_a_missing_class_is_reported(tmp_path: Path) -> None:
    one = write(tmp_path / "one", BASE, PARTS)
    other = write(tmp_path / "other", BASE, PARTS.replace("class Part", "class Other"))
    changes = drift.compare(one, other, uses())
    assert [(item.kind, item.name) for item in changes] == [("gone", "Part")]


def test_a_folder_without_vllm_is_refused_in_one_sentence(tmp_path: Path) -> None:
    folder = write(tmp_path / "installed", BASE, PARTS)
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        f"from {PACKAGE}.vllm.drift import main; main([{str(tmp_path)!r}])"
    )
    done = run_python(code, check=False)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.endswith("has no vllm/platforms/interface.py: give a folder or wheel of vLLM")


@pytest.mark.ecosystem("vllm")
def test_each_method_accepts_the_arguments_of_the_installed_release() -> None:
    spec = importlib.util.find_spec("vllm")
    assert spec is not None and spec.origin is not None
    sources = drift.Sources(Path(spec.origin).parents[1])
    missing = [use for use in drift.uses() if sources.find(use.module, use.name) is None]
    assert missing == []
    assert sum(len(use.methods) for use in drift.uses()) > 50
    for module in ("attention", "experts", "layers", "linear", "platform", "worker"):
        importlib.import_module(f"{PACKAGE}.vllm.{module}")
    classes = [
        each
        for name, module in sys.modules.items()
        if name.startswith(f"{PACKAGE}.vllm.")
        for each in vars(module).values()
        if inspect.isclass(each) and each.__module__ == name
    ]
    for each in classes:
        for base in each.__mro__[1:]:
            if not base.__module__.startswith("vllm."):
                continue
            for name in vars(each).keys() & vars(base).keys():
                own, theirs = getattr(each, name), getattr(base, name)
                if inspect.isfunction(own) and inspect.isfunction(theirs) and name != "__init__":
                    given = inspect.signature(theirs).parameters
                    if any(each.kind is each.VAR_KEYWORD for each in given.values()):
                        continue  # overrides choose their own arguments
                    taken = inspect.signature(own).parameters
                    assert given.keys() <= taken.keys(), (each, name)
