"""Kernels in C++ for a device that takes shared objects of the host, as the simulator does."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

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


def compile_source(source: str, name: str, options: Sequence[str]) -> bytes:
    """Return the shared object with the C++ function ``name`` as a kernel.

    Raises:
        RuntimeError: it does not compile, with what the compiler says; or there is no compiler.
    """
    if not name.isidentifier():
        raise RuntimeError(f"{name!r} is not the name of a C++ function")
    command = shlex.split(os.environ.get("CXX") or "c++")
    if shutil.which(command[0]) is None:
        raise RuntimeError(
            f"kernels of this device are compiled by the host's C++ compiler, and there is no "
            f"{command[0]}: install one, or name it in the variable CXX"
        )
    with tempfile.TemporaryDirectory() as folder:
        text, result = Path(folder, f"{name}.cpp"), Path(folder, f"{name}.so")
        # Lines are numbered as in the source that was given.
        lines = ["#line 1", source, '#line 1 "the call of the kernel"', _END.replace("NAME", name)]
        text.write_text(_BEGIN + "\n".join(lines))
        fixed = ["-std=c++20", "-O3", "-fPIC", "-shared"]
        done = subprocess.run(
            [*command, *fixed, *options, str(text), "-o", str(result)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            log = done.stderr.replace(f"{folder}/", "")
            raise RuntimeError(f"the kernel {name} does not compile:\n{log}")
        return result.read_bytes()
