"""The C++ check compiles every file, with the flags of a real build, and reports what fails."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import pytest

from maintenance.compat import cxx, pythons, releases
from rendering import Renderer
from torchsmith.errors import InputError

SITE = Path(sysconfig.get_path("purelib"))


@pytest.fixture
def groups(render: Renderer, tmp_path: Path) -> list[cxx.Group]:
    return cxx.configure(render(preset="full"), tmp_path / "build", SITE)


def test_every_file_above_the_device_interface_has_a_compile_command(
    groups: list[cxx.Group], render: Renderer
) -> None:
    assert len(groups) > 5
    assert cxx.uncovered(render(preset="full"), groups) == set()
    assert all({"-Wall", "-Werror", "-fsyntax-only"} <= set(group.command) for group in groups)
    assert not [group for group in groups if "-o" in group.command]


def test_device_files_also_have_a_compile_command_for_aarch64(
    render: Renderer, tmp_path: Path
) -> None:
    """Only `make compat`, which has that processor's PyTorch, compiles the files."""
    if not shutil.which(cxx.CROSS):
        pytest.skip(f"there is no {cxx.CROSS}")
    project = render(preset="full")
    groups = cxx.configure(project, tmp_path / "build", SITE, aarch64=True)
    assert cxx.uncovered(project, groups) == set()
    below = {path.relative_to(project).parts[1] for group in groups for path in group.files
             if path.is_relative_to(project / "device")}  # fmt: skip
    assert below >= {"glue.cpp", "loader", "reference", "simulator"}
    assert all(Path(group.command[0]).name == cxx.CROSS for group in groups)


def test_a_file_that_does_not_compile_is_reported_with_the_compiler_error(tmp_path: Path) -> None:
    groups = []
    for name, text in (
        ("good", "int one() { return 1; }\n"),
        ("bad", "int two() { return gone; }\n"),
    ):
        file = tmp_path / f"{name}.cpp"
        file.write_text(text)
        command = ("c++", "-fsyntax-only", str(file))
        groups.append(cxx.Group(name, (file,), command, tmp_path))
    complaints = {group.name: complaint for group, complaint in cxx.check(groups, jobs=1)}
    assert complaints["good"] == ""
    assert "gone" in complaints["bad"]


def test_an_error_of_cmake_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        'cmake_minimum_required(VERSION 3.22)\nmessage(FATAL_ERROR "No pybind11:\\n  pip it")\n'
    )
    with pytest.raises(InputError) as error:
        cxx.configure(tmp_path, tmp_path / "build", SITE)
    assert str(error.value) == f"CMake does not configure for '{SITE}': No pybind11: pip it"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"^cmake is not installed: pip install cmake$"):
        cxx.configure(tmp_path, tmp_path / "build", SITE)
    with pytest.raises(InputError, match=r"^ninja is not installed: pip install ninja$"):
        cxx.precompile(tmp_path / "build")


def test_a_header_that_does_not_compile_is_reported_with_the_compiler_error(
    tmp_path: Path,
) -> None:
    source = tmp_path / "CMakeFiles" / "x.dir" / "cmake_pch.hxx.cxx"
    source.parent.mkdir(parents=True)
    for text in ("int one = 1;\n", "int two = gone;\n"):
        source.write_text(text)
        (tmp_path / "build.ninja").write_text(
            "rule cxx\n  command = c++ -fsyntax-only $in\n"
            "build CMakeFiles/x.dir/cmake_pch.hxx.gch: cxx CMakeFiles/x.dir/cmake_pch.hxx.cxx\n"
        )
        assert ("gone" in cxx.precompile(tmp_path)) == ("gone" in text)


def test_a_release_outside_the_window_is_refused() -> None:
    with pytest.raises(InputError, match=r"PyTorch 1\.9 is outside .* choose from 2\.10, "):
        releases.sources("1.9")


def test_names_missing_in_a_python_version_are_reported(tmp_path: Path) -> None:
    package = tmp_path / "python" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import datetime\n\nnow = datetime.datetime.now(datetime.UTC)\n"
    )
    found = pythons.mypy_problems(tmp_path, tmp_path / "mypy")
    assert found
    assert all(line.startswith("Python 3.10: ") for line in found)
    assert "UTC" in found[0]
