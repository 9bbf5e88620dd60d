"""A wheel, built and repaired as for a release, works in an environment without a compiler."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from maintenance.installing import Installed, make_environment
from maintenance.release.wheels import read_recipe, repair

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("wheel")]


def run(command: list[str], cwd: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def repaired(
    install: Callable[..., Installed], packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    """Return a repaired wheel in an environment without other files of the project.

    The steps are those of `maintenance.release`, with the installed packages.
    """
    full = install("full", preset="full")
    folder = tmp_path_factory.mktemp("wheel")
    recipe = read_recipe(full.project)

    # With the Python that installed it, for which everything is compiled already.
    built = folder / "built"
    pip = [sys.executable, "-m", "pip", f"--python={full.python}", "wheel", "--no-deps"]
    run([*pip, *recipe.pip_arguments, f"--wheel-dir={built}", "."], full.project, full.environment)
    (wheel,) = built.iterdir()

    made = repair(recipe, wheel, folder / "dist", full.environment)
    assert re.fullmatch(
        r"torch_foo-0\.1\.0-cp3\d+-cp3\d+-manylinux_2_\d+_(x86_64|aarch64)\.whl", made.name
    )
    libraries = {
        Path(name).name.partition(".")[0]
        for name in zipfile.ZipFile(made).namelist()
        if ".so" in name
    }
    assert libraries == {"_C", "_distributed", "libfoo_device", "libtorch_foo"}

    python = make_environment(folder / "venv", packages)
    # Nothing may be missing: what the wheel requires must be there already.
    pip = [sys.executable, "-m", "pip", f"--python={python}", "install", "--no-index"]
    run([*pip, str(made)], folder, full.environment)
    return Installed("repaired", full.project, python)


def test_the_repaired_wheel_runs_the_quickstart(repaired: Installed, tmp_path: Path) -> None:
    examples = tmp_path / "project" / "examples"
    examples.mkdir(parents=True)
    shutil.copy(repaired.project / "examples" / "quickstart.py", examples)
    command = read_recipe(repaired.project).test.format(project=examples.parent)
    assert "foo:0" in run(shlex.split(command), tmp_path, repaired.environment)


def test_an_extension_can_be_built_against_the_wheel(repaired: Installed, tmp_path: Path) -> None:
    project, environment = tmp_path / "extension", repaired.environment
    shutil.copytree(repaired.project / "examples" / "extension", project)
    code = "import torch; print(torch.foo.cmake_prefix_path)"
    prefix = run([str(repaired.python), "-c", code], tmp_path, environment).split()[-1]
    assert Path(prefix).is_relative_to(repaired.python.parents[1])
    configure = ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    run([*configure, f"-DPython_EXECUTABLE={repaired.python}"], project, environment)
    run(["cmake", "--build", "build"], project, environment)
    run(["cmake", "--install", "build", "--prefix", "."], project, environment)
    code = "import torch, gated; x = torch.ones(3).to('foo'); print(gated.silu_mul(x, x))"
    assert "0.7311" in run([str(repaired.python), "-c", code], project, environment)
