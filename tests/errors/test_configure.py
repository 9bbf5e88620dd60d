"""CMake prints one sentence if a machine lacks a requirement of the build."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from commanding import BIN, run
from rendering import Renderer

HERE = f"-DPython_EXECUTABLE={sys.executable}"


def configure(project: Path, build: Path, *options: str, **environment: str) -> str:
    """Run CMake, which must fail with one error, and return that error on one line."""
    cmake = shutil.which("cmake", path=f"{BIN}:{os.environ['PATH']}")
    assert cmake, "the tests need cmake"
    done = run(
        cmake, "-S", project, "-B", build, "-G", "Ninja", *options, cwd=project, **environment
    )
    assert done.status != 0, done.out
    assert "Traceback" not in done.err
    errors = re.findall(r"CMake Error at [^\n]*:\n+((?:  [^\n]*\n|\n)*)", done.err)
    assert len(errors) == 1, done.err
    return " ".join(errors[0].split())


@pytest.fixture
def project(render: Renderer) -> Path:
    return render(preset="full")


def test_a_missing_compiler_is_reported(project: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for program in ("ninja", "python"):
        found = shutil.which(program, path=f"{BIN}:{os.environ['PATH']}")
        assert found is not None
        (tools / program).symlink_to(found)
    error = configure(project, tmp_path / "build", HERE, PATH=str(tools), CXX="")
    assert re.match(r"foo needs a C\+\+20 compiler, and none was found: install one", error)


@pytest.mark.parametrize(
    ("system", "processor"), [("Darwin", "arm64"), ("Windows", "AMD64"), ("Linux", "riscv64")]
)
def test_an_unsupported_platform_is_reported(
    system: str, processor: str, project: Path, tmp_path: Path
) -> None:
    # CMake takes the processor from the machine unless the system is given, too.
    options = (f"-DCMAKE_SYSTEM_NAME={system}", f"-DCMAKE_SYSTEM_PROCESSOR={processor}")
    assert configure(project, tmp_path / "build", *options) == (
        f"foo builds for Linux on x86-64 and aarch64, not for {system} on {processor}: "
        "build it on one of those, for example in a container."
    )


def test_a_missing_torch_is_reported(project: Path, tmp_path: Path) -> None:
    bare = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    error = configure(
        project, tmp_path / "build", f"-DPython_EXECUTABLE={bare / 'bin' / 'python'}", PYTHONPATH=""
    )
    assert error.startswith("PyTorch is not installed for ")
    assert "pip install torch" in error


def pretended(version: str, folder: Path) -> str:
    """Return a folder with a fake PyTorch that has only a version."""
    package = folder / "site" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "version.py").write_text(f"__version__ = '{version}'\n")
    return str(package.parent)


@pytest.mark.parametrize("version", ["2.9.1", "2.16.0", "1.13.1", "3.0.0"])
def test_an_unsupported_torch_version_is_reported(
    version: str, project: Path, tmp_path: Path
) -> None:
    site = pretended(version, tmp_path)
    error = configure(project, tmp_path / "build", HERE, PYTHONPATH=site)
    assert error.startswith(f"PyTorch {version} is installed, but this backend builds with")
    assert "2.10 to 2.15" in error


def test_torch_newest_allows_an_unreleased_torch(project: Path, tmp_path: Path) -> None:
    site = pretended("2.16.0.dev20261101+cpu", tmp_path)
    options = (HERE, "-DTORCH_NEWEST=2.99", "-DFOO_DEVICE=acme")
    error = configure(project, tmp_path / "build", *options, PYTHONPATH=site)
    assert error.startswith("There is no device in ")  # the check of the device comes later


@pytest.mark.parametrize(
    ("version", "others"),
    [
        ("2.13.0", ["2.13.1", "2.12.9", "2.14.0"]),
        ("2.13.1+cpu", ["2.13.0", "2.12.9", "2.14.0"]),
        ("2.16.0.dev20261101+cpu", ["2.16.0", "2.15.9", "2.17.0.dev20270101"]),
        ("2.16.0a0+git1f00d", ["2.16.0rc1", "2.15.9", "2.17.0a0"]),
    ],
)
def test_a_wheel_requires_the_minor_release_of_its_build(
    version: str, others: list[str], project: Path, tmp_path: Path
) -> None:
    code = "from torch_requirement import dynamic_metadata as ask; print(*ask('dependencies', {}))"
    path = os.pathsep.join([pretended(version, tmp_path), str(project / "cmake")])
    done = run(sys.executable, "-B", "-c", code, PYTHONPATH=path).passed()
    (asked,) = [Requirement(line) for line in done.out.splitlines()]
    # pip takes an installed pre-release if the requirement names one.
    accepted = [each for each in (version, *others) if asked.specifier.contains(each)]
    assert accepted == [version, others[0]]


def test_a_device_folder_without_a_runtime_is_reported(project: Path, tmp_path: Path) -> None:
    error = configure(project, tmp_path / "build", HERE, "-DFOO_DEVICE=acme")
    assert error.startswith(f"There is no device in {project}/device/acme: ")
    assert "runtime.cpp is missing" in error
