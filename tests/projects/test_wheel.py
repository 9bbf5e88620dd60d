"""A wheel, built and repaired as a release does it, serves an environment that has no compiler."""

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

from torchsmith.smoke.installing import Installed, environment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = [
    pytest.mark.xdist_group("full"),
    pytest.mark.skipif(sys.platform != "linux", reason="wheels are built on Linux"),
]


def run(command: list[str], cwd: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def test_a_repaired_wheel_runs_the_quickstart_where_nothing_else_of_the_project_is(
    install: Callable[..., Installed], packages: Path, tmp_path: Path
) -> None:
    """Cibuildwheel's own steps, taken from its settings, but in no container.

    The name of the wheel says so: a container's older libraries allow for more systems.
    """
    full = install("full", preset="full")
    text = (full.project / "cibuildwheel.toml").read_text("utf-8")
    settings = tomllib.loads(text)["tool"]["cibuildwheel"]

    # By the Python that installed it, for which everything is compiled already.
    built = tmp_path / "built"
    pip = [sys.executable, "-m", "pip", f"--python={full.python}", "wheel", "--no-deps"]
    arguments = settings["build-frontend"]["args"]
    run([*pip, *arguments, f"--wheel-dir={built}", "."], full.project, full.environment)
    (wheel,) = built.iterdir()

    repair = settings["linux"]["repair-wheel-command"]
    command = repair.format(dest_dir=tmp_path / "dist", wheel=wheel)
    run(["sh", "-c", command], tmp_path, full.environment)
    (repaired,) = (tmp_path / "dist").iterdir()
    assert re.fullmatch(
        r"torch_foo-0\.1\.0-cp3\d+-cp3\d+-manylinux_2_\d+_(x86_64|aarch64)\.whl", repaired.name
    )
    libraries = {
        Path(name).name.partition(".")[0]
        for name in zipfile.ZipFile(repaired).namelist()
        if ".so" in name
    }
    assert libraries == {"_C", "_distributed", "libfoo_device", "libtorch_foo"}

    python = environment(tmp_path / "venv", packages)
    # Nothing may be missing: what the wheel requires must be there already.
    pip = [sys.executable, "-m", "pip", f"--python={python}", "install", "--no-index"]
    run([*pip, str(repaired)], tmp_path, full.environment)
    examples = tmp_path / "project" / "examples"
    examples.mkdir(parents=True)
    shutil.copy(full.project / "examples" / "quickstart.py", examples)
    words = shlex.split(settings["test-command"].format(project=examples.parent))
    assert words[0] == "python"
    assert "foo:0" in run([str(python), *words[1:]], tmp_path, full.environment)
