"""Kernels that are written at run time."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, PACKAGE, backend
from changed_device import without_group
from run_time_kernels import takes_kernels
from support import has_function, needs, needs_two_devices, run_python

SOURCES = {
    "elf-host": """
        #include <cmath>
        void add(const Group& group, float* out, const float* a, const float* b, int n) {
          for (uint32_t item = 0; item < group.items[0]; ++item) {
            const int i = group.index[0] * group.items[0] + item;
            if (i < n) out[i] = a[i] + b[i];
          }
        }
        void affine(const Group&, float* x, float factor, int64_t offset) {
          *x = std::fma(factor, *x, offset);
        }
        void nothing(const Group&) {}
    """,
    "opencl-c": """
        kernel void add(global float* out, global const float* a, global const float* b, int n) {
          const int i = get_global_id(0);
          if (i < n) out[i] = a[i] + b[i];
        }
        kernel void affine(global float* x, float factor, long offset) {
          *x = fma(factor, *x, (float)offset);
        }
        kernel void nothing() {}
    """,
}
pytestmark = [needs(torch.float32)]
_host_kernels = import_module(f"{PACKAGE}._host_kernels")
_private = import_module(f"{PACKAGE}._private")
COUNT = 1000


def compiled(name: str, device: Any = None) -> Any:
    source = textwrap.dedent(SOURCES[backend.kernel_format(device)])
    return backend.compile_kernel(source, name, device=device)


def numbers(device: str = DEVICE) -> torch.Tensor:
    return torch.arange(float(COUNT), device=device)


@takes_kernels(SOURCES)
def test_a_kernel_computes_with_tensors_and_ints() -> None:
    add = compiled("add")
    a, b, out = numbers(), numbers() * 2, torch.zeros(COUNT, device=DEVICE)
    add(grid=(16, 1, 1), block=(64, 1, 1), args=[out, a, b, COUNT])
    assert out.cpu().equal(numbers("cpu") * 3)
    add((16,), (64,), (out, a, a, 10))
    assert out.cpu().equal(torch.cat([numbers("cpu")[:10] * 2, numbers("cpu")[10:] * 3]))
    assert repr(add) == f"<kernel add of {DEVICE}:0>"


@takes_kernels(SOURCES)
def test_a_tensor_is_the_address_of_its_first_element() -> None:
    x = numbers()
    compiled("affine")(args=[x[7::2], ctypes.c_float(0.5), ctypes.c_int64(2**40)])
    expected = numbers("cpu")
    expected[7] = 0.5 * 7 + 2.0**40
    assert x.cpu().equal(expected)


@takes_kernels(SOURCES)
def test_a_lazy_copy_gets_its_own_memory() -> None:
    x = numbers()
    copy = torch._lazy_clone(x)
    compiled("affine")(args=[copy, ctypes.c_float(1), ctypes.c_int64(5)])
    assert (x[0].item(), copy[0].item()) == (0, 5)


@takes_kernels(SOURCES)
def test_a_kernel_without_arguments_runs() -> None:
    nothing = compiled("nothing")
    nothing()
    backend.synchronize()
    with pytest.raises(RuntimeError, match="takes 0 arguments, and got 1"):
        nothing(args=[1])


@takes_kernels(SOURCES)
def test_a_launch_is_ordered_on_the_current_or_given_stream() -> None:
    affine = compiled("affine")
    stream = backend.Stream()
    x = torch.ones(1, device=DEVICE)
    stream.wait_stream(backend.current_stream())
    for number in range(5):
        affine(args=[x, ctypes.c_float(2), ctypes.c_int64(number)], stream=stream)
    with backend.stream(stream):
        x += 0.5
        affine(args=[x, ctypes.c_float(2), ctypes.c_int64(0)])
    expected = 1.0
    for number in range(5):
        expected = 2 * expected + number
    backend.current_stream().wait_stream(stream)
    assert x.item() == 2 * (expected + 0.5)


@takes_kernels(SOURCES)
def test_memory_is_not_reused_before_a_kernel_on_another_stream_has_run() -> None:
    add = compiled("add")
    stream = backend.Stream()
    out = torch.zeros(COUNT, device=DEVICE)
    for _ in range(50):
        a = numbers()
        stream.wait_stream(backend.current_stream())
        add((16,), (64,), [out, a, a, COUNT], stream=stream)
        del a
        torch.full((COUNT,), -1.0, device=DEVICE)
    stream.synchronize()
    assert out.cpu().equal(numbers("cpu") * 2)


@takes_kernels(SOURCES)
def test_a_kernel_can_be_deleted_while_it_runs() -> None:
    out = torch.zeros(COUNT, device=DEVICE)
    compiled("add")((16,), (64,), [out, numbers(), numbers(), COUNT])
    gc.collect()
    assert out.cpu().equal(numbers("cpu") * 2)


@takes_kernels(SOURCES)
@needs_two_devices
def test_each_device_has_its_own_kernels() -> None:
    for device in (f"{DEVICE}:1", 0):
        x = torch.ones(1, device=torch.device(DEVICE, 1 if device else 0))
        compiled("affine", device)(args=[x, ctypes.c_float(3), ctypes.c_int64(1)])
        assert x.item() == 4
    here = compiled("affine")
    with pytest.raises(ValueError, match=f"argument 1 is a tensor of {DEVICE}:1, and the kernel"):
        here(args=[torch.ones(1, device=f"{DEVICE}:1"), ctypes.c_float(3), ctypes.c_int64(1)])
    with pytest.raises(ValueError, match=f"runs on {DEVICE}:0, the stream on {DEVICE}:1"):
        here(args=[], stream=backend.Stream(1))


@takes_kernels(SOURCES)
def test_bytes_are_loaded_as_compiled_code() -> None:
    if backend.kernel_format() != "elf-host":
        code = SOURCES[backend.kernel_format()].encode()
    else:
        code = _host_kernels.compile_source(SOURCES["elf-host"], "affine", ())
    x = torch.ones(1, device=DEVICE)
    backend.compile_kernel(code, "affine")(args=[x, ctypes.c_float(3), ctypes.c_int64(1)])
    assert x.item() == 4


on_the_host = pytest.mark.skipif(
    not _host_kernels.has_compiler(), reason="the host has no compiler"
)


def affine(cache: Path) -> bytes:
    return _host_kernels.compile_source(SOURCES["elf-host"], "affine", (), cache)


@on_the_host
@pytest.mark.parametrize(
    "spoilt",
    [lambda whole: whole[: len(whole) // 2], lambda whole: b"", lambda whole: b"junk" * 1000],
    ids=["cut off", "empty", "junk"],
)
def test_a_damaged_cached_kernel_is_compiled_again(tmp_path: Path, spoilt: Any) -> None:
    code = affine(tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(spoilt(whole))
    assert affine(tmp_path) == code
    assert file.read_bytes() == whole


@on_the_host
def test_a_cached_kernel_that_others_can_write_is_compiled_again(tmp_path: Path) -> None:
    code = affine(tmp_path)
    (file,) = tmp_path.iterdir()
    planted = b"planted"
    file.write_bytes(hashlib.sha256(planted).digest() + planted)
    assert affine(tmp_path) == planted  # files written by this user are trusted
    file.chmod(0o666)
    assert affine(tmp_path) == code
    file.write_bytes(hashlib.sha256(planted).digest() + planted)
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
        assert affine(tmp_path) == code


def test_the_cache_folder_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = _private.cache_folder(tmp_path / "above" / "folder")
    finally:
        os.umask(before)
    assert made == tmp_path / "above" / "folder"
    assert made.stat().st_mode & 0o777 == made.parent.stat().st_mode & 0o777 == 0o700
    made.chmod(0o777)
    with pytest.warns(UserWarning, match="others can write to it"):
        other = _private.cache_folder(made)
    assert other not in (made, made.parent)
    assert other.stat().st_mode & 0o777 == 0o700
    assert _private.cache_folder(made) == other  # and warns once


@takes_kernels(SOURCES)
def test_truncated_code_is_refused() -> None:
    if backend.kernel_format() != "elf-host":
        pytest.skip("another device's driver looks at its code")
    code = _host_kernels.compile_source(SOURCES["elf-host"], "affine", ())
    for damaged in (code[: len(code) // 2], code[:40], b"", b"junk" * 1000):
        with pytest.raises(RuntimeError, match="is truncated"):
            backend.compile_kernel(damaged, "affine")


@takes_kernels(SOURCES)
def test_nested_sparse_and_conjugate_tensors_are_refused() -> None:
    add = compiled("add")
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    for tensor, says in (
        (nested.to(DEVICE), "argument 1 is a nested tensor"),
        (torch.eye(3).to_sparse().to(DEVICE), "argument 1 is a sparse tensor"),
        (torch.ones(2, dtype=torch.complex64).to(DEVICE).conj(), "resolve_conj"),
    ):
        with pytest.raises(ValueError, match=says):
            add(args=[tensor, tensor, tensor, 1])


@takes_kernels(SOURCES)
def test_options_are_passed_to_the_compiler() -> None:
    source = {
        "elf-host": "void set(const Group&, float* x) { *x = NUMBER; }",
        "opencl-c": "kernel void set(global float* x) { *x = NUMBER; }",
    }[backend.kernel_format()]
    x = torch.ones(1, device=DEVICE)
    backend.compile_kernel(source, "set", ["-DNUMBER=7"])(args=[x])
    assert x.item() == 7


@on_the_host
def test_the_compiler_behind_a_wrapper_is_part_of_the_cache_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrapper like ccache prints its own version if it is called without the compiler."""
    wrapped = ["env", *_host_kernels._command()]
    asked: list[str] = []
    monkeypatch.setenv("CXX", " ".join(wrapped))
    monkeypatch.setattr(_host_kernels, "_compiler", lambda *command: asked.extend(command))
    affine(tmp_path)
    assert asked == wrapped


# --- Mistakes ---


@takes_kernels(SOURCES)
def test_the_error_contains_the_compilers_output() -> None:
    source = {
        "elf-host": "void bad(const Group&, float* x) {\n  *x = missing;\n}",
        "opencl-c": "kernel void bad(global float* x) {\n  *x = missing;\n}",
    }[backend.kernel_format()]
    with pytest.raises(RuntimeError, match="missing") as caught:
        backend.compile_kernel(source, "bad")
    assert ":2:" in str(caught.value)


@takes_kernels(SOURCES)
def test_a_missing_function_is_named() -> None:
    with pytest.raises(RuntimeError, match="absent"):
        compiled("absent")


def test_options_in_one_string_are_refused() -> None:
    with pytest.raises(TypeError, match="options is a sequence of strings, not '-O2'"):
        backend.compile_kernel(b"", "affine", "-O2")


@takes_kernels(SOURCES)
def test_wrong_arguments_are_refused_with_an_explanation() -> None:
    add, x = compiled("add"), numbers()
    with pytest.raises(ValueError, match="argument 2 is a tensor of cpu, and the kernel runs on"):
        add(args=[x, x.cpu(), x, 1])
    with pytest.raises(TypeError, match="argument 4 is of type str: kernels take tensors, ints"):
        add(args=[x, x, x, "1"])
    with pytest.raises(ValueError, match=r"does not fit an int: pass ctypes\.c_int64"):
        add(args=[x, x, x, 2**40])
    with pytest.raises(RuntimeError, match="add takes 4 arguments, and got 3"):
        add(args=[x, x, x])
    with pytest.raises(RuntimeError, match="argument 4 of add"):
        add(args=[x, x, x, 1.0])
    with pytest.raises(ValueError, match="grid is one to three numbers from 1 on"):
        add(grid=(0, 1, 1), args=[x, x, x, 1])
    with pytest.raises(ValueError, match="block is one to three numbers"):
        add(block=(1, 1, 1, 1), args=[x, x, x, 1])
    with pytest.raises(ValueError, match="shared_mem is a number of bytes"):
        add(args=[x, x, x, 1], shared_mem=-1)
    with pytest.raises(RuntimeError, match="work items"):
        add(block=(2**20, 1, 1), args=[x, x, x, 1])
    assert x.cpu().equal(numbers("cpu"))


@takes_kernels(SOURCES)
def test_a_trace_of_launches_names_the_kernel() -> None:
    code = f"""
        import torch
        source = {SOURCES[backend.kernel_format()]!r}
        kernel = torch.get_device_module("{DEVICE}").compile_kernel(source, "nothing")
        kernel()
        torch.accelerator.synchronize()
    """
    said = run_python(code, {f"{ENV_PREFIX}_TRACE": "launches"}).stderr
    (line,) = (line for line in said.splitlines() if "launch_function(" in line)
    assert "nothing" in line


@takes_kernels(SOURCES)
def test_a_device_without_modules_raises_an_error(tmp_path: Path) -> None:
    code = f"""
        import torch
        backend = torch.get_device_module("{DEVICE}")
        for call in (backend.kernel_format, lambda: backend.compile_kernel("", "x")):
            try:
                call()
            except NotImplementedError as error:
                print(error)
        print(torch.ones(2, device="{DEVICE}").sum().item())
    """
    said = run_python(code, without_group("modules", tmp_path)).stdout.splitlines()
    assert len(said) == 3
    assert all("takes no kernels at run time" in line and "modules.h" in line for line in said[:2])


@pytest.mark.skipif(
    not has_function("modules", "load_module") or backend.kernel_format() != "elf-host",
    reason="the page's example is in C++ for the host",
)
def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "features" / "kernels.md").read_text(
        "utf-8"
    )
    code = page.split("```python\n", 1)[1].split("```", 1)[0]
    shown = run_python(code + "\nprint(out.cpu().equal(torch.arange(1000.0) * 0.5))")
    assert shown.stdout == "True\n"
