"""C++ kernels for a device that loads shared objects of the host, like the simulator."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ._private import keep, read_private

# Of the ABI that the simulator's modules.h describes.
_BEGIN = """\
#include <cstddef>
#include <cstdint>
#include <utility>

struct Group {
  uint32_t index[3];   // of the group
  uint32_t groups[3];  // how many there are
  uint32_t items[3];   // of a group
  uint32_t shared_bytes;
  void* shared;
};
"""
_END = """
namespace launched {

template <class... A>
struct Parameters {
  uint32_t count = sizeof...(A);
  uint32_t bytes[sizeof...(A) + 1] = {sizeof(A)...};
};

template <class... A>
constexpr Parameters<A...> parameters_of(void (*)(const Group&, A...)) {
  return {};
}

template <class... A, size_t... i>
void call(void (*function)(const Group&, A...), const void* const* arguments, const Group& group,
          std::index_sequence<i...>) {
  function(group, *static_cast<const A*>(arguments[i])...);
}

template <class... A>
void call(void (*function)(const Group&, A...), const void* const* arguments, const Group& group) {
  call(function, arguments, group, std::index_sequence_for<A...>());
}

}  // namespace launched

extern "C" {
extern const decltype(launched::parameters_of(&NAME)) kernel_NAME_parameters;
const decltype(launched::parameters_of(&NAME)) kernel_NAME_parameters = {};
void kernel_NAME(const void* const* arguments, const Group* group) {
  launched::call(&NAME, arguments, *group);
}
}
"""


def has_compiler() -> bool:
    """Return whether the host has a C++ compiler."""
    return shutil.which(_command()[0]) is not None


def compile_source(
    source: str, name: str, options: Sequence[str], cache: Path | None = None
) -> bytes:
    """Return the shared object with the C++ function ``name`` as a kernel.

    Args:
        source: the C++ source that defines the function.
        name: the name of the function.
        options: options for the compiler.
        cache: a private folder for compiled objects; processes may share it.

    Raises:
        RuntimeError: the source does not compile, with the compiler's output; or there is no
            compiler.
    """
    if not name.isidentifier():
        raise RuntimeError(f"{name!r} is not the name of a C++ function")
    command = _command()
    if not has_compiler():
        raise RuntimeError(
            f"kernels of this device are compiled by the host's C++ compiler, and there is no "
            f"{command[0]}: install one, or name it in the variable CXX"
        )
    # Line numbers in errors are those of the given source.
    lines = ["#line 1", source, '#line 1 "the call of the kernel"', _END.replace("NAME", name)]
    text = _BEGIN + "\n".join(lines)
    command += ["-std=c++20", "-O3", "-fPIC", "-shared", *options]
    if cache is None:
        return _compile(command, text, name)
    known = repr((command, text, _compiler(*_command()), _processor()))
    kept = cache / f"{hashlib.sha256(known.encode()).hexdigest()}.kernel"
    # The file has the digest of the code, then the code. A full disk may have truncated it.
    contents = read_private(kept) or b""
    digest, code = contents[:32], contents[32:]
    if hashlib.sha256(code).digest() != digest:
        code = _compile(command, text, name)
        keep(kept, hashlib.sha256(code).digest() + code)
    return code


def _command() -> list[str]:
    return shlex.split(os.environ.get("CXX") or "c++")


def _compile(command: Sequence[str], text: str, name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        stem = name[:64]  # file names have a maximum length
        source, result = Path(folder, f"{stem}.cpp"), Path(folder, f"{stem}.so")
        source.write_text(text, "utf-8")
        done = subprocess.run(
            [*command, str(source), "-o", str(result)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            log = done.stderr.replace(f"{folder}/", "")
            raise RuntimeError(f"the kernel {name} does not compile:\n{log}")
        return result.read_bytes()


@functools.cache
def _compiler(*command: str) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return done.stdout


@functools.cache
def _processor() -> str:
    """Return a cache key for code compiled on this processor."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text("utf-8").splitlines() if described.is_file() else []
    return platform.machine() + next((each for each in lines if each.startswith("flags")), "")
