"""How the package finds its features."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from backend import PACKAGE, backend

discovery: Any = importlib.import_module(f"{PACKAGE}._discovery")

FILES = {
    "__init__.py": "",
    "_private.py": "raise ImportError('a private module is no feature')",
    "base.py": "__all__ = ['greet']\ndef greet(): return 'base'",
    "beta.py": "__all__ = ['beta']\nbeta = 2\nGENERATED_METHODS = {'for_storage': True}",
    "alpha.py": (
        "__all__ = ['greet']\ndone = []\ndef greet(): return 'alpha'\n"
        "def setup(): done.append(True)\nGENERATED_METHODS = {'for_storage': True}"
    ),
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    folder = tmp_path / "discovered"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("discovered")
    for name in [name for name in sys.modules if name.split(".")[0] == "discovered"]:
        del sys.modules[name]


def discover(package: ModuleType) -> list[Any]:
    base = importlib.import_module("discovered.base")
    extensions: list[Any] = discovery.discover(package, core=[base])
    return extensions


def test_core_comes_first_then_public_modules_by_name(package: ModuleType) -> None:
    assert [extension.name for extension in discover(package)] == ["base", "alpha", "beta"]


def test_a_feature_overrides_the_core(package: ModuleType) -> None:
    exports: dict[str, Any] = {}
    for extension in discover(package):
        exports.update(extension.exports)
    assert exports["greet"]() == "alpha"
    assert exports["beta"] == 2


def test_setup_is_found_but_not_called(package: ModuleType) -> None:
    _, alpha, beta = discover(package)
    assert beta.setup is None
    assert alpha.module.done == []
    alpha.setup()
    assert alpha.module.done == [True]


def test_generated_methods_are_merged(package: ModuleType) -> None:
    assert discovery.generated_methods(discover(package)) == {"for_storage": True}


def test_conflicting_features_are_named(package: ModuleType) -> None:
    extensions = discover(package)
    extensions[1].generated_methods["for_storage"] = False
    with pytest.raises(ValueError, match=r"alpha and beta disagree on .*'for_storage'"):
        discovery.generated_methods(extensions)


def test_every_module_of_this_package_is_an_attribute_of_it() -> None:
    for extension in backend._extensions:
        assert getattr(backend, extension.name) is extension.module
        for name, value in extension.exports.items():
            assert hasattr(backend, name), value
