"""The wheel has the template, and renders what the repository renders."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from rendering import ROOT, Renderer, commit, contents, git
from torchsmith import __version__, template

TEMPLATE = ("copier.yml", "generator/catalog", "template")


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., CompletedProcess[str]]:
    """`make release-check` in folders of its own, with the environment that the tests run in."""
    folder = tmp_path_factory.mktemp("release")
    ready = Path(sys.prefix) / "ready"
    command = ["make", "-o", str(ready), f"VENV={sys.prefix}"]
    command += [f"DIST={folder / 'dist'}", f"TRIAL={folder / 'trial'}", "release-check"]

    def check(tag: str = "") -> CompletedProcess[str]:
        return subprocess.run([*command, f"TAG={tag}"], cwd=ROOT, capture_output=True, text=True)

    return check


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from what git knows of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (built,) = folder.glob("torchsmith-*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it depends on, but nothing of this checkout."""
    environment = tmp_path_factory.mktemp("installed") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = next((environment / "lib").glob("python3*/site-packages"))
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", str(wheel)], check=True)
    theirs = next((Path(sys.prefix) / "lib").glob("python3*/site-packages"))
    # Dependencies alone: the lines of .pth files in a folder on the path are not read.
    (site / "dependencies.pth").write_text(f"{theirs}\n")
    return environment / "bin" / "python"


def torchsmith(python: Path, *arguments: str, cwd: Path) -> CompletedProcess[str]:
    """Run the command without a network: git reaches nothing but this machine's files."""
    command = [str(python), "-I", "-m", "torchsmith.cli", *arguments]
    offline = {**os.environ, "GIT_ALLOW_PROTOCOL": "file"}
    return subprocess.run(command, cwd=cwd, env=offline, capture_output=True, text=True)


def test_it_has_what_git_has_and_no_module_besides(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "torchsmith",
        f"torchsmith-{__version__}.dist-info",
    }
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", *TEMPLATE)
    there = {name for name in listed.split("\0") if name and (ROOT / name).exists()}
    prefix = "torchsmith/_template/"
    assert {name.removeprefix(prefix) for name in names if name.startswith(prefix)} == there


def test_what_it_renders_is_what_the_repository_renders(
    python: Path, render: Renderer, tmp_path: Path
) -> None:
    done = torchsmith(python, "new", "torch-foo", "--defaults", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expected, actual = contents(render()), contents(tmp_path / "torch-foo")
    theirs = yaml.safe_load(expected.pop(".copier-answers.yml"))
    mine = yaml.safe_load(actual.pop(".copier-answers.yml"))
    assert actual == expected
    assert mine == {**theirs, "_commit": f"v{__version__}", "_src_path": template.REPOSITORY}


def test_its_projects_are_kept_up_without_a_network(
    python: Path, render: Renderer, tmp_path: Path
) -> None:
    project = tmp_path / "torch-foo"

    def run(*arguments: str) -> str:
        done = torchsmith(python, *arguments, cwd=project)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert torchsmith(python, "new", "torch-foo", "--defaults", cwd=tmp_path).returncode == 0
    commit(project, "rendered")
    with (project / "README.md").open("a") as file:
        file.write("ours\n")
    commit(project, "edited")
    assert "+ csrc/graphs/" in run("preview", "--add", "graphs")
    run("add", "graphs", "--yes")
    commit(project, "graphs")
    run("remove", "amp", "--yes")
    commit(project, "no amp")
    assert "Nothing to do" in run("update", "--yes")
    assert "\n+ours\n" in run("diff")
    drift = json.loads(torchsmith(python, "doctor", "--json", cwd=project).stdout)["drift"]
    assert [row["path"] for row in drift["differences"]] == ["README.md"]
    run("doctor", "--restore", "README.md")
    expected = contents(render(features=["rng", "storage", "publishing", "graphs"]))
    actual = contents(project)
    answers = yaml.safe_load(actual.pop(".copier-answers.yml"))
    assert (answers["_commit"], answers["_src_path"]) == (template.TAG, template.REPOSITORY)
    del expected[".copier-answers.yml"]
    assert actual == expected


def test_what_a_release_publishes_is_built_installed_and_tried(
    check: Callable[..., CompletedProcess[str]],
) -> None:
    done = check()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2, done.stdout  # twine's word on wheel and sdist
    assert f"torchsmith {__version__}\n" in done.stdout
    assert re.search(r"(\d+) of \1 passed", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("tag", "reason"),
    [("v0.0.7", "the tag is v0.0.7"), (f"v{__version__}", "CHANGELOG.md has no dated heading")],
)
def test_a_tag_that_is_not_this_version_is_refused(
    tag: str, reason: str, check: Callable[..., CompletedProcess[str]]
) -> None:
    done = check(tag)
    assert done.returncode != 0
    assert reason in done.stdout
