"""The wheel has the template, and renders what the repository renders."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from rendering import ROOT, Renderer, contents, git
from torchsmith import __version__, release

TEMPLATE = ("copier.yml", "generator/catalog", "template")


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


def torchsmith(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
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
