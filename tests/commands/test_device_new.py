"""`torchsmith device new`: what is written, that it compiles, and that it names what is missing."""

from __future__ import annotations

import os
import re
from pathlib import Path

from commanding import Torchsmith, succeed
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


# Of two devices: what is known of an address, on which, and after it has gone.
HANDLES = """
#include <cstdio>
#include <foo/device/runtime.h>
using namespace torch_foo::device;
int main() {
  char* const address = static_cast<char*>(allocate(1, 100));
  const PointerInfo inside = describe(1, address + 99);
  const bool is_known = inside.kind == MemoryKind::kDevice && inside.device == 1;
  std::printf("%d ", is_known && inside.base == address && host_address(1, address) == nullptr);
  std::printf("%d ", describe(1, address + 100).kind == MemoryKind::kUnknown);
  std::printf("%d ", describe(0, address).kind == MemoryKind::kUnknown);
  deallocate(1, address);
  std::printf("%d", describe(1, address).kind == MemoryKind::kUnknown);
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
    torchsmith("device", "new", "acme", cwd=project).passed()
    text = (project / "device/acme/runtime.cpp").read_text("utf-8")
    assert (
        "// See runtime.h.\nstd::pair<int, int> cool(int /*device*/, void (* /*done*/)(int))"
        in text
    )


def test_it_compiles_and_names_what_is_not_written(
    project: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    torchsmith("device", "new", "acme", cwd=project).passed()
    files = ["device/acme/runtime.cpp", "device/acme/kernels/fill.cpp"]
    succeed("clang-format", "--dry-run", "--Werror", *files, cwd=project)
    (tmp_path / "calls.cpp").write_text(CALLS)
    program = tmp_path / "calls"
    succeed(
        os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra", "-Werror",
        "-Idevice/include", *files, tmp_path / "calls.cpp", "-o", program, cwd=project,
    )  # fmt: skip
    assert succeed(program).splitlines() == [
        "0",
        "1 ACME: allocate is not written yet: write it in device/acme/runtime.cpp",
        "element type",
    ]


def test_comments_break_at_blanks_only(project: Path, torchsmith: Torchsmith) -> None:
    torchsmith("device", "new", "acme", cwd=project).passed()
    text = (project / "device/acme/runtime.cpp").read_text("utf-8")
    assert not re.search(r"^// .*\w-$", text, re.MULTILINE)
    assert all(len(line) <= 120 for line in text.splitlines() if line.startswith("//"))


def test_with_handles_addresses_lead_to_buffers(
    project: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    report = torchsmith("device", "new", "acme", "--handles", "--json", cwd=project).json
    assert report["files"][-1] == "device/acme/addresses.h"
    sources = ["device/acme/runtime.cpp", "device/acme/kernels/fill.cpp"]
    succeed(
        "clang-format",
        "--dry-run",
        "--Werror",
        *report["files"][:2],
        report["files"][-1],
        cwd=project,
    )
    runtime = project / "device/acme/runtime.cpp"
    text = runtime.read_text("utf-8")
    text = text.replace(
        "create_buffer(int /*device*/, size_t /*bytes*/) { not_written(",
        "create_buffer(int, size_t bytes) { return new char[bytes]; (",
    )
    text = text.replace(
        "destroy_buffer(Buffer /*buffer*/) noexcept {}",
        "destroy_buffer(Buffer buffer) noexcept { delete[] static_cast<char*>(buffer); }",
    )
    runtime.write_text(
        text.replace(
            "int device_count() noexcept { return {}; }",
            "int device_count() noexcept { return 2; }",
        )
    )
    (tmp_path / "calls.cpp").write_text(HANDLES)
    program = tmp_path / "calls"
    succeed(
        os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra", "-Wno-unused-value",
        "-Werror", "-Idevice/include", "-Idevice", *sources, tmp_path / "calls.cpp", "-o", program,
        cwd=project,
    )  # fmt: skip
    assert succeed(program).split() == ["1", "1", "1", "1"]


def test_what_is_there_is_left_alone(project: Path, torchsmith: Torchsmith) -> None:
    for name in ("simulator", "include"):
        assert torchsmith("device", "new", name, cwd=project).refused() == (
            f"'device/{name}' is there already: choose another name, or remove it first"
        )
    runtime_header(project).unlink()
    done = torchsmith("device", "new", "acme", cwd=project)
    done.refused("runtime.h' is missing: restore it with git")
    assert not (project / "device" / "acme").exists()
