"""Rules for rendered files, with few combinations of features and with hostile answers."""

from __future__ import annotations

import ast
import re
import sys
from itertools import permutations
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from feature_sets import covering_combinations
from rendering import HOSTILE, Renderer, answers_in, contents, contents_but_for_answers, files, toml
from torchsmith import catalog

COMBINATIONS = covering_combinations()
# Files that may differ between combinations, besides the features' own files.
WHITELIST = {
    ".copier-answers.yml",
    ".torchsmith.yml",
    "README.md",
    "python/torch_foo/_features.py",
    "python/torch_foo/_operators.json",
}


def parameters() -> list[Any]:
    return [pytest.param(each, id=name(each)) for each in COMBINATIONS]


def name(combination: frozenset[str]) -> str:
    return "+".join(sorted(combination)) or "none"


@pytest.fixture(params=[*parameters(), pytest.param(HOSTILE, id="hostile")])
def project(request: pytest.FixtureRequest, render: Renderer) -> Path:
    if request.param is HOSTILE:
        return render(**HOSTILE)
    return render(features=request.param)


def needs(one: catalog.Feature, other: catalog.Feature) -> bool:
    return other.id in catalog.closure(frozenset({one.id}))


def test_the_combinations_cover_each_pair_of_features() -> None:
    for one, other in permutations(catalog.features().values(), 2):
        on = {one.id in combination for combination in COMBINATIONS if other.id in combination}
        assert on == ({True} if needs(other, one) else {True, False})
        off = {one.id in combination for combination in COMBINATIONS if other.id not in combination}
        assert off == ({False} if needs(one, other) else {True, False})
    assert all(catalog.closure(each) == each for each in COMBINATIONS)


def test_rendered_files_have_no_placeholders_or_whitespace_errors(project: Path) -> None:
    """Files have no placeholder and no trailing space, end in one newline, and can be parsed."""
    wrong = []
    for path, data in contents(project).items():
        text = data.decode("utf-8")
        body = text.replace(HOSTILE["vendor"], "")
        if re.search(r"\{=|=\}|^\s*#%", body, re.M):
            wrong.append(f"{path}: template syntax")
        if re.search(r"[ \t]+$", text, re.M) or "\r" in text:
            wrong.append(f"{path}: blanks at the end of a line")
        if data and (not text.endswith("\n") or text.endswith("\n\n")):
            wrong.append(f"{path}: end of file")
        if path.endswith(".toml"):
            toml(project / path)
        elif path.endswith((".yml", ".yaml")) and not path.endswith("mkdocs.yml"):
            assert yaml.safe_load(text)
    assert not wrong
    folders = [path for path in project.rglob("*") if path.is_dir()]
    assert not [folder for folder in folders if not any(folder.iterdir())]


@pytest.mark.parametrize("combination", parameters())
def test_a_feature_consists_of_whole_files(combination: frozenset[str], render: Renderer) -> None:
    """A render equals the full render without the files of the features that are off."""
    off = [feature for id, feature in catalog.features().items() if id not in combination]
    full = contents(render(preset="full", device="starter"))
    expected = {
        path: data
        for path, data in full.items()
        if not any(feature.owns(PurePosixPath(path), "torch_foo") for feature in off)
    }
    actual = contents(render(features=combination, device="starter"))
    assert sorted(actual) == sorted(expected)
    assert {path for path in actual if actual[path] != expected[path]} <= WHITELIST


def test_a_preset_renders_the_same_as_its_features(render: Renderer) -> None:
    presets = catalog.presets()
    assert presets["minimal"] == set() < presets["standard"] < presets["serving"] < presets["full"]
    assert presets["full"] == set(catalog.features())
    for preset, combination in presets.items():
        one, other = render(preset=preset), render(features=combination)
        assert contents_but_for_answers(one) == contents_but_for_answers(other)


def test_the_core_defines_no_names_of_features(render: Renderer) -> None:
    project = render(preset="minimal")
    words = "|".join(word for feature in catalog.features().values() for word in feature.provides)
    found = [
        f"{path}: {match[0]}"
        for path in files(project)
        if path.parts[0] in ("csrc", "python")
        # Functions of the C++ module are not names of the package.
        and path.name not in ("_features.py", "_operators.json", "_C.pyi")
        # Other libraries define the names in integrations.
        and "integrations" not in path.parts
        for match in re.finditer(
            rf"\bdef ({words})\b|(?<![.\w])({words}) =", (project / path).read_text("utf-8")
        )
    ]
    assert not found


@pytest.mark.parametrize("feature", catalog.features().values(), ids=lambda feature: feature.id)
def test_a_feature_exports_the_names_that_the_catalog_lists(
    feature: catalog.Feature, render: Renderer
) -> None:
    package = render(preset="full") / "python" / "torch_foo"
    modules = [
        package / path.partition("{package}/")[2] for path in feature.paths if "{package}" in path
    ]
    if not feature.provides:
        return
    files = [module / "__init__.py" if module.is_dir() else module for module in modules]
    lists = [
        re.search(r"^__all__.* = (\[[^]*]*\])", file.read_text("utf-8"), re.MULTILINE)
        for file in files
    ]
    exported = {name for found in lists if found for name in ast.literal_eval(found[1])}
    assert set(feature.provides) <= exported


def test_the_error_of_an_absent_module_names_its_feature(render: Renderer) -> None:
    project = render(preset="full")
    listed = re.search(r"^MODULES.*?^}", (project / "python" / "torch_foo" / "_absent.py")
                       .read_text("utf-8"), re.MULTILINE | re.DOTALL)  # fmt: skip
    assert listed
    named = dict(re.findall(r'"(\w+)": "(\w+)"', listed[0]))
    modules = {
        path.stem: feature.id
        for feature in catalog.features().values()
        for path in feature.places("torch_foo")
        if path.parent == PurePosixPath("python/torch_foo") and (project / path).exists()
        if not path.stem.startswith("_")
    }
    assert {module: named.get(module, module) for module in modules} == modules


def test_the_licence_answer_selects_the_licence_text(render: Renderer) -> None:
    first_lines = {
        "apache-2.0": "Apache License",
        "bsd-3-clause": "BSD 3-Clause",
        "mit": "MIT License",
        "proprietary": "All rights reserved",
    }
    for license, words in first_lines.items():
        text = (render(preset="full", license=license, vendor="Acme & Sons") / "LICENSE").read_text(
            "utf-8"
        )
        assert words in text
        assert "Copyright" in text
        assert "Acme & Sons" in text


def test_the_chosen_device_is_rendered_and_is_the_default(render: Renderer) -> None:
    project = render(preset="standard", device="opencl")
    assert (project / "device" / "opencl" / "runtime.cpp").is_file()
    built = "set(FOO_DEVICE {} CACHE STRING"
    assert built.format("opencl") in (project / "device" / "CMakeLists.txt").read_text("utf-8")
    tested = (project / "device" / "tests" / "device_library.py").read_text("utf-8")
    assert 'os.environ.get(f"{ENV_PREFIX}_DEVICE", "opencl")' in tested
    for preset, device in (("minimal", "starter"), ("full", "simulator")):
        other = render(preset=preset) / "device" / "CMakeLists.txt"
        assert built.format(device) in other.read_text("utf-8")


def test_hostile_answers_are_rendered_unchanged(render: Renderer) -> None:
    project = render(**HOSTILE)
    metadata = toml(project / "pyproject.toml")["project"]
    assert metadata["description"] == HOSTILE["description"]
    assert metadata["name"] == "torch-" + HOSTILE["backend_name"].replace("_", "-")
    answers = answers_in(project)
    assert {key: answers[key] for key in HOSTILE} == HOSTILE


def test_device_test_requirements_match_their_imports(render: Renderer) -> None:
    tests = render(preset="full") / "device" / "tests"
    own = {path.stem for path in tests.rglob("*")} | {"_device", "torch"}
    imported = set()
    for path in tests.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").partition(".")[0])
            elif isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
    required = set(re.findall(r"^[\w-]+", (tests / "requirements.txt").read_text(), re.MULTILINE))
    # Build tools and test runners are not imported.
    tools = {"cmake", "ninja", "pybind11", "pytest-xdist"}
    assert imported - own - sys.stdlib_module_names == required - tools
