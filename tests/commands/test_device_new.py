"""`torchsmith device new`: a copy of the starter under the new name, which compiles."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from commanding import Torchsmith, succeed
from rendering import Renderer, git

# Two devices with memory of their own; their errors have the new name.
CALLS = """
#include <cstdio>
#include <foo/device/kernels.h>
using namespace torch_foo::device;
int main() {
  std::printf("%d %s\\n", device_count(), properties(1).name);
  void* const address = allocate(1, 100);
  std::printf("%d\\n", describe(1, address).kind == MemoryKind::kDevice);
  deallocate(1, address);
  try {
    static_cast<void>(allocate(0, size_t{1} << 60));
  } catch (const Error& error) {
    std::printf("%d %.18s\\n", error.code() == ErrorCode::kOutOfMemory, error.what());
  }
}
"""


def test_device_new_copies_the_starter_under_the_new_name(
    project: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    report = torchsmith("device", "new", "acme", "--json", cwd=project / "docs").json
    starter = project / "device" / "starter"
    files = {file.relative_to(starter).as_posix() for file in starter.rglob("*") if file.is_file()}
    assert report["device"] == "acme"
    assert set(report["files"]) == {f"device/acme/{file}" for file in files}
    assert git(project, "status", "--porcelain").splitlines() == ["?? device/acme/"]
    assert not any(re.search("starter", (project / f).read_text(), re.I) for f in report["files"])

    sources = [file for file in report["files"] if file.endswith(".cpp")]
    succeed("clang-format", "--dry-run", "--Werror", *sources, cwd=project)
    (tmp_path / "calls.cpp").write_text(CALLS)
    program = tmp_path / "calls"
    succeed(
        os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra", "-Werror", "-pthread",
        "-Idevice/include", "-Idevice/acme", *sources, tmp_path / "calls.cpp", "-o", program,
        cwd=project,
    )  # fmt: skip
    assert succeed(program).splitlines() == ["2 Acme 1", "1", "1 ACME_ERROR (1): 11"]


def test_device_new_with_text_writes_files_that_compile(
    render: Renderer, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    shutil.copytree(render(features=["kernel_texts"]), project)
    texts = project / "device" / "shared" / "text"
    report = torchsmith("device", "new", "acme", "--text", "glsl", "--json", cwd=project).json
    assert {file.rpartition("/")[2] for file in report["files"]} == {
        "device.cmake", "runtime.cpp", "sdk.cpp", "sdk.h", "text.cpp",
    }  # fmt: skip
    acme = project / "device" / "acme"
    assert "set(TEXT_DIALECT glsl)" in (acme / "device.cmake").read_text()
    assert (acme / "text.cpp").read_text().count("write compile() in device/acme/text.cpp") == 1
    succeed("clang-format", "--dry-run", "--Werror", "device/acme/text.cpp", cwd=project)
    succeed(
        "cmake", f"-DTEXTS={';'.join(map(str, texts.glob('kernels/*.kernel')))}",
        f"-DDIALECT={texts / 'dialects' / 'glsl.kernel'}", f"-DOUTPUT={tmp_path / 'sources.h'}",
        "-P", texts / "embed.cmake",
    )  # fmt: skip
    succeed(
        os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
        "-Idevice/include", "-Idevice", f"-I{tmp_path}", "device/acme/text.cpp", cwd=project,
    )  # fmt: skip


def test_an_unknown_dialect_is_refused(
    project: Path, render: Renderer, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    torchsmith("device", "new", "acme", "--text", "glsl", cwd=project).refused(
        "torchsmith add kernel_texts"
    )
    with_texts = tmp_path / "project"
    shutil.copytree(render(features=["kernel_texts"]), with_texts)
    torchsmith("device", "new", "acme", "--text", "glls", cwd=with_texts).refused("glsl")
    assert not (project / "device" / "acme").exists()
    assert not (with_texts / "device" / "acme").exists()


def test_the_starter_defines_or_names_every_runtime_function(project: Path) -> None:
    header = project / "device" / "include" / "foo" / "device" / "entries.h"
    listed = re.search(r"DEVICE_RUNTIME\(X\)(.*?)\n\n", header.read_text("utf-8"), re.DOTALL)
    assert listed
    text = (project / "device" / "starter" / "runtime.cpp").read_text("utf-8")
    for name in re.findall(r"X\((\w+)\)", listed[1]):
        assert re.search(rf"\b{name}\b", text) or name == "set_interrupt_check"
    # Each function has a comment that describes its implementation on a chip.
    _, *functions = text.split("// --- Devices ---")[1].split("\n\n")
    assert all(part.lstrip().startswith(("// ", "}")) for part in functions)


def test_device_new_does_not_overwrite_a_device(project: Path, torchsmith: Torchsmith) -> None:
    for name in ("starter", "include"):
        assert torchsmith("device", "new", name, cwd=project).refused() == (
            f"'device/{name}' already exists: choose another name, or remove it first"
        )
    (project / "device" / "starter" / "runtime.cpp").unlink()
    torchsmith("device", "new", "acme", cwd=project).refused("is missing: restore it with git")
    assert not (project / "device" / "acme").exists()


def test_device_check_runs_the_script_of_the_project(
    project: Path, render: Renderer, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    torchsmith("device", "check", "acme", cwd=project).refused("torchsmith add device_tests")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" > {tmp_path / "given"}\nexit 1\n')
    python.chmod(0o755)
    project = render(features=["device_tests"])
    ended = torchsmith(
        "device", "check", "acme", "--json", "--python", str(python), cwd=project / "docs"
    )
    assert ended.status == 1
    assert (tmp_path / "given").read_text() == f"{project}/device/tests/check.py acme --json\n"
