"""`torchsmith device new`: what is written, that it compiles, and that it names what is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commanding import Torchsmith
from rendering import git
from torchsmith.devices import header
from torchsmith.devices.steps import STEPS

# Calls one of each kind.
CALLS = """
#include <cstdio>
#include <foo/device/kernels.h>
using namespace torch_foo::device;
int main() {
  std::printf("%d\\n", device_count());
  deallocate(0, nullptr);
  try {
    allocate(0, 1);
  } catch (const Error& error) {
    std::printf("%d %s\\n", error.code() == ErrorCode::kUnsupported, error.what());
  }
  TensorView view{};
  view.dtype = DType::kFloat32;
  Launch launch{};
  launch.probe = true;
  std::printf("%s\\n", fill(launch, view, Scalar()).reason());
}
"""


def runtime_header(project: Path) -> Path:
    return project / "device" / "include" / "foo" / "device" / "runtime.h"


def test_each_function_of_the_header_stands_there_in_its_order(
    project: Path, torchsmith: Torchsmith
) -> None:
    report = torchsmith("device", "new", "acme", "--json", cwd=project / "docs").json
    assert report == {
        "device": "acme",
        "files": [
            "device/acme/runtime.cpp", "device/acme/kernels/fill.cpp", "device/acme/device.cmake",
            "device/acme/support.toml",
        ],
    }  # fmt: skip
    entries = (runtime_header(project).parent / "entries.h").read_text("utf-8")
    listed = re.search(r"DEVICE_RUNTIME\(X\)(.*?)\n\n", entries, re.DOTALL)
    assert listed
    wanted = re.findall(r"X\((\w+)\)", listed[1])
    wanted.remove("set_interrupt_check")
    text = (project / "device/acme/runtime.cpp").read_text("utf-8")
    assert re.findall(r"^\w.*?\b(\w+)\(.*\{.*\}$", text, re.MULTILINE) == wanted
    assert git(project, "status", "--porcelain").splitlines() == ["?? device/acme/"]


def test_every_function_says_what_to_do(project: Path) -> None:
    functions = {function.name for function in header.read(runtime_header(project))}
    assert functions - set(STEPS) == {"set_interrupt_check", "check_for_interrupt"}
    assert not set(STEPS) - functions


def test_a_function_that_another_version_has_added_is_there_too(
    project: Path, torchsmith: Torchsmith
) -> None:
    path = runtime_header(project)
    text = path.read_text("utf-8")
    added = "// Cools.\nstd::pair<int, int> cool(int device,\n    void (*done)(int));\n"
    path.write_text(text.replace("// --- Memory", f"{added}\n// --- Memory"), "utf-8")
    assert torchsmith("device", "new", "acme", cwd=project).status == 0
    text = (project / "device/acme/runtime.cpp").read_text("utf-8")
    assert (
        "// See runtime.h.\nstd::pair<int, int> cool(int /*device*/, void (* /*done*/)(int))"
        in text
    )


def test_it_compiles_and_names_what_is_not_written(
    project: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    assert torchsmith("device", "new", "acme", cwd=project).status == 0
    files = ["device/acme/runtime.cpp", "device/acme/kernels/fill.cpp"]
    formatted = subprocess.run(
        [str(Path(sys.executable).with_name("clang-format")), "--dry-run", "--Werror", *files],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert formatted.returncode == 0, formatted.stderr
    (tmp_path / "calls.cpp").write_text(CALLS)
    program = tmp_path / "calls"
    compiled = subprocess.run(
        [
            os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra", "-Werror",
            "-Idevice/include", *files, str(tmp_path / "calls.cpp"), "-o", str(program),
        ],
        cwd=project,
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr[:4000]
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "0",
        "1 ACME: allocate is not written yet: write it in device/acme/runtime.cpp",
        "element type",
    ]


@pytest.mark.parametrize("name", ["Acme", "2acme", "a-b", "../x", "a b", ""])
def test_a_name_that_is_none_is_refused(project: Path, torchsmith: Torchsmith, name: str) -> None:
    done = torchsmith("device", "new", name, cwd=project)
    assert done.status == 2
    assert done.err.startswith(f"torchsmith: '{name}' is no name for a device: begin with")
    assert done.err.count("\n") == 1
    assert not git(project, "status", "--porcelain")


def test_what_is_there_is_left_alone(project: Path, torchsmith: Torchsmith) -> None:
    for name in ("simulator", "include"):
        done = torchsmith("device", "new", name, cwd=project)
        assert done.status == 2
        assert done.err == (
            f"torchsmith: 'device/{name}' is there already: "
            "choose another name, or remove it first\n"
        )
    runtime_header(project).unlink()
    done = torchsmith("device", "new", "acme", cwd=project)
    assert done.status == 2
    assert "runtime.h' is missing: restore it with git" in done.err
    assert not (project / "device" / "acme").exists()


def test_outside_a_project_it_is_refused(tmp_path: Path, torchsmith: Torchsmith) -> None:
    done = torchsmith("device", "new", "acme", cwd=tmp_path)
    assert done.status == 2
    assert "is not in a rendered project" in done.err
