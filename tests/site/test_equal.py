"""The page has the files that its commands write, and the template's messages about names."""

from __future__ import annotations

import hashlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from choosing import pick, retype, shown, text
from commanding import succeed
from feature_sets import covering_combinations
from rendering import ROOT, Renderer, contents
from torchsmith import catalog

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

# All tests share one browser.
pytestmark = pytest.mark.xdist_group("browser")

# Checksums instead of texts: a browser takes long to return a megabyte for each render.
SUMS = """
const done = arguments[arguments.length - 1];
(async () => {
  const sums = {};
  const hex = (byte) => byte.toString(16).padStart(2, "0");
  for (const path of torchsmith.written()) {
    const text = new TextEncoder().encode(torchsmith.textOf(path));
    const bytes = await crypto.subtle.digest("SHA-256", text);
    sums[path] = [...new Uint8Array(bytes)].map(hex).join("");
  }
  return sums;
})().then(done, (error) => done(String(error)));
"""
# Files whose text depends on the features: the page shows the nearest preset's.
DEPENDING = {
    ".copier-answers.yml",
    ".torchsmith.yml",
    "README.md",
    "python/torch_foo/_features.py",
    "python/torch_foo/_operators.json",
}
# Without the sets of no and of all features, which are the presets `minimal` and `full`.
COMBINATIONS = covering_combinations()[1:-1]


def different(page: WebDriver, project: Path) -> set[str]:
    """Return the files that differ between the page and a project."""
    sums = page.execute_async_script(SUMS)
    wanted = {path: hashlib.sha256(data).hexdigest() for path, data in contents(project).items()}
    assert shown(page) == set(wanted)
    return {path for path in {**wanted, **sums} if wanted.get(path) != sums.get(path)}


def run(page: WebDriver, id: str, folder: Path) -> None:
    """Run a command of the page."""
    words = shlex.split(text(page, id))
    if words[0] == "torchsmith":
        words[:1] = [sys.executable, "-m", "torchsmith.cli"]
    succeed(*words, cwd=folder, PYTHONPATH=str(ROOT / "generator"))


@pytest.mark.parametrize(
    ("preset", "command"),
    [
        *((preset, "new") for preset in catalog.presets() if preset != "full"),
        ("serving", "command"),
        pytest.param("full", "new", marks=pytest.mark.nightly),
    ],
)
def test_the_page_shows_a_preset_as_the_command_writes_it(
    preset: str, command: str, page: WebDriver, tmp_path: Path
) -> None:
    retype(page, "backend_name", "acme_npu")
    page.find_element("css selector", f"input[value={preset}]").click()
    assert f" -d preset={preset}" in text(page, command)
    assert " v1.0.0 " in text(page, command)
    run(page, command, tmp_path)
    assert different(page, tmp_path / "torch-acme-npu") == set()


def test_files_that_depend_on_features_are_shown_for_the_nearest_preset(
    page: WebDriver, tmp_path: Path
) -> None:
    pick(page, catalog.presets()["minimal"] | {"rng", "amp"})
    run(page, "new", tmp_path)
    assert different(page, tmp_path / "torch-foo") <= DEPENDING
    said = [text(page, "nearest")]
    page.execute_script("torchsmith.choose('LICENSE')")
    said += [text(page, "nearest")]
    assert said == [
        "This file depends on the features: it is shown as for the preset minimal, the nearest to "
        "your choice.",
        "",
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda on: "+".join(sorted(on)))
def test_the_page_shows_every_combination_as_the_render(
    combination: frozenset[str], page: WebDriver, render: Renderer
) -> None:
    pick(page, combination)
    assert different(page, render(features=sorted(combination))) <= DEPENDING


def test_the_page_refuses_the_same_names_as_the_template(page: WebDriver) -> None:
    names = ["", "foo", "acme_npu", "Foo", "1st", "a__b", "_a", "a_", "größe", "a b", "a\n"]
    names += ["x" * 50, "x" * 51, "torch", "namespace", "is_leaf", "python", "constructor"]
    for group in catalog.load("reserved")["reserved"]["default"]:
        names += group["names"].split()[:40]
    said: list[Any] = page.execute_script("return arguments[0].map(torchsmith.problem)", names)
    taken = {name: problem for name in names if (problem := catalog.name_problem(name))}
    assert {name for name, problem in zip(names, said, strict=True) if problem} == set(taken)
    assert dict(zip(names, said, strict=True))["cuda"] == taken["cuda"]
