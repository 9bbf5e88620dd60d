"""The wheel has the template, and renders what the repository renders."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from rendering import ROOT, Renderer, contents, git
from torchsmith import __version__, release

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
    command = [str(python), "-I", "-m", "torchsmith.cli", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


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
    assert mine == {**theirs, "_commit": f"v{__version__}", "_src_path": release.REPOSITORY}


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
