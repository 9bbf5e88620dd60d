"""Rule: every path belongs to the core or to exactly one feature."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePosixPath

import pytest
import yaml

from rendering import Renderer, commit, files, snapshot
from torchsmith import catalog

PACKAGE = "torch_foo"


@pytest.fixture(scope="module", params=["github", "gitlab"])
def paths(request: pytest.FixtureRequest, render: Renderer) -> list[PurePosixPath]:
    return list(files(render(preset="full", ci_provider=request.param)))


def parts() -> dict[str, tuple[PurePosixPath, ...]]:
    """Return the paths of the features, of `ci` and of the core."""
    tables = catalog.load("features")
    others = {
        "ci": chain.from_iterable(tables["ci_files"]["default"].values()),
        "core": tables["core_paths"]["default"],
    }
    return {
        **catalog.places(PACKAGE),
        **{
            id: tuple(PurePosixPath(each.replace("{package}", PACKAGE)[1:]) for each in declared)
            for id, declared in others.items()
        },
    }


PARTS = parts()


def needs(path: PurePosixPath) -> frozenset[str]:
    """Return the parts that a path needs: its own, those of its folders, and what these require."""
    covering = {
        id for id, places in PARTS.items() if any(catalog.covers(place, path) for place in places)
    }
    return catalog.closure(frozenset(covering & catalog.features().keys())) | {"core"}


def test_every_file_has_an_owner(paths: list[PurePosixPath]) -> None:
    wrong = [str(path) for path in paths if catalog.owner(path, PARTS) is None]
    assert not wrong, "declare these in generator/catalog"


def test_no_path_is_owned_twice() -> None:
    declared = [place for places in PARTS.values() for place in places]
    assert len(declared) == len(set(declared))


ROOTS = [
    PurePosixPath(root)
    for root in ("csrc", "device", "device/include", "device/tests", "python", "tests")
]
"""Roots of names in includes and imports, besides the folder of the file."""


def needed(path: Path) -> Iterator[str]:
    """Yield the ends of the paths of the files that it includes or imports."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        yield from re.findall(r'^#include ["<]([^">]+)[">]', text, re.M)
        return
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = path.parts[: -node.level] if node.level else ()
            inside = parts[parts.index(PACKAGE) :] if PACKAGE in parts else ()
            module = ".".join(filter(None, [*inside, node.module]))
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (f"{name.replace('.', '/')}.py" for name in names)


def test_files_do_not_include_or_import_files_of_absent_features(render: Renderer) -> None:
    """A project without a feature has all files that its own files include or import."""
    project = render(preset="full")
    paths = {path for path in files(project) if path.suffix in (".h", ".cpp", ".py")}
    count, wrong = 0, []
    for path in paths:
        there = needs(path)
        for name in needed(project / path):
            found = {root / name for root in (*ROOTS, path.parent)} & paths
            count += bool(found)
            if found and not any(needs(other) <= there for other in found):
                wrong.append(f"{path}, of {', '.join(sorted(there))}, needs {name}")
    assert count > 1500
    assert not wrong


@pytest.mark.parametrize("feature", catalog.features())
def test_every_path_of_a_feature_exists(feature: str, render: Renderer) -> None:
    projects = [render(preset="full", ci_provider=provider) for provider in ("github", "gitlab")]
    declared = [path.replace("{package}", PACKAGE) for path in catalog.features()[feature].paths]
    assert declared
    for path in declared:
        assert any((project / path.lstrip("/")).exists() for project in projects), path


def test_every_path_of_the_core_exists(render: Renderer) -> None:
    project = render(preset="minimal")
    declared = [
        path.replace("{package}", PACKAGE)
        for path in catalog.load("features")["core_paths"]["default"]
    ]
    assert not [path for path in declared if not (project / path.lstrip("/")).exists()]


def test_feature_paths_do_not_end_with_a_slash() -> None:
    """Copier leaves an empty folder if the pattern ends with a folder."""
    for feature in catalog.features().values():
        assert not [path for path in feature.paths if path.endswith("/") or path[0] != "/"]


def test_feature_requirements_exist_and_have_no_cycle() -> None:
    rows = catalog.features()
    for id, feature in rows.items():
        assert set(feature.requires) <= set(rows)
        beyond = [catalog.closure(frozenset(rows[needed].requires)) for needed in feature.requires]
        assert id not in set().union(*beyond)


PROVIDERS = {"github": {".github"}, "gitlab": {".gitlab-ci.yml", ".gitlab"}, "none": set[str]()}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_only_the_chosen_provider_has_its_files(provider: str, render: Renderer) -> None:
    every = set[str]().union(*PROVIDERS.values())
    there = {path.parts[0] for path in files(render(preset="full", ci_provider=provider))}
    assert there & every == PROVIDERS[provider]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_manifest_lists_only_existing_paths(provider: str, render: Renderer) -> None:
    project = render(preset="full", ci_provider=provider)
    parts = yaml.safe_load((project / ".torchsmith.yml").read_text("utf-8"))["parts"]
    listed = [path for part in parts.values() for path in part["paths"]]
    assert [path for path in listed if not (project / path).exists()] == []


def test_the_manifest_lists_only_moves_of_rendered_files(render: Renderer, tmp_path: Path) -> None:
    manifest = (render() / ".torchsmith.yml").read_text("utf-8")
    assert yaml.safe_load(manifest)["moved"] == {}
    template = snapshot(tmp_path / "template")
    rows = template / "generator" / "catalog" / "moved.yml"
    moves = """
    - {since: 1.1.0, part: core, from: "python/{package}/old.py", to: "python/{package}/memory.py"}
    - {since: 1.1.0, part: amp, from: csrc/old/autocast.cpp, to: csrc/amp/autocast.cpp}
    - {since: 1.1.0, part: rng, from: csrc/old/generator.cpp, to: csrc/rng/generator.cpp}
"""
    rows.write_text(rows.read_text("utf-8").replace("default: []\n", f"default:{moves}"))
    commit(template, "moves")
    project = Renderer(template, tmp_path).fresh(tmp_path / "project", features=["amp"])
    assert yaml.safe_load((project / ".torchsmith.yml").read_text("utf-8"))["moved"] == {
        "python/torch_foo/old.py": "python/torch_foo/memory.py",
        "csrc/old/autocast.cpp": "csrc/amp/autocast.cpp",
    }


def test_the_device_interface_is_in_every_project(paths: list[PurePosixPath]) -> None:
    """The device interface is the headers, the table and the loader. Absent functions are null."""
    interface = [
        path
        for path in paths
        if path.parts[0] == "device" and path.parts[1] in ("include", "loader", "glue.cpp")
    ]
    assert len(interface) > 30
    assert [path for path in interface if needs(path) != {"core"}] == []


def test_tests_use_only_names_of_features_rendered_with_them(
    paths: list[PurePosixPath], render: Renderer
) -> None:
    """A test may also check that a name exists."""
    project = render(preset="full")
    providers = {name: id for id, row in catalog.features().items() for name in row.provides}
    wrong = []
    for path in paths:
        if path.suffix != ".py" or path.parts[0] != "tests":
            continue
        text = (project / path).read_text("utf-8")
        asks = re.search(r"hasattr\(backend|FEATURES\[", text)
        for name in set(re.findall(r"\b(?:backend|torch\.foo)\.(\w+)", text)):
            if providers.get(name, "core") not in needs(path) and not asks:
                wrong.append(f"{path}: {name} of {providers[name]}")
    assert not wrong
