"""Kernels in the device's code format, for tests of modules.

A device with another code format needs an entry in `KERNELS`: the functions described below, in
that format.
"""

from __future__ import annotations

import functools
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

COUNT = 1000
VALUES = np.arange(COUNT, dtype=np.float32)

# scale(out, in, float factor, int n):  out[i] = in[i] * factor for work items i < n
# places(out):                          out[i] = 1000 * number of the group + number in the group
# reverse(out, in):                     reverses each group's part of a row, by shared memory
_HOST = """
#include <cstdint>
#include <stdexcept>
struct Group { uint32_t index[3], groups[3], items[3]; uint32_t shared_bytes; void* shared; };
template <class T> T get(const void* const* arguments, int i) {
  return *static_cast<const T*>(arguments[i]);
}
extern "C" {
extern const uint32_t kernel_scale_parameters[] = {4, 8, 8, 4, 4};
void kernel_scale(const void* const* arguments, const Group* group) {
  float* out = get<float*>(arguments, 0);
  const float* in = get<const float*>(arguments, 1);
  const float factor = get<float>(arguments, 2);
  const uint32_t n = get<int32_t>(arguments, 3);
  for (uint32_t item = 0; item < group->items[0]; ++item) {
    const uint32_t i = group->index[0] * group->items[0] + item;
    if (i < n) out[i] = in[i] * factor;
  }
}
extern const uint32_t kernel_places_parameters[] = {1, 8};
void kernel_places(const void* const* arguments, const Group* group) {
  int32_t* out = get<int32_t*>(arguments, 0);
  const uint32_t *at = group->index, *groups = group->groups, *items = group->items;
  const uint32_t number = (at[2] * groups[1] + at[1]) * groups[0] + at[0];
  const uint32_t size = items[0] * items[1] * items[2];
  for (uint32_t item = 0; item < size; ++item) out[number * size + item] = 1000 * number + item;
}
extern const uint32_t kernel_reverse_parameters[] = {2, 8, 8};
void kernel_reverse(const void* const* arguments, const Group* group) {
  int32_t* out = get<int32_t*>(arguments, 0);
  const int32_t* in = get<const int32_t*>(arguments, 1);
  int32_t* shared = static_cast<int32_t*>(group->shared);
  const uint32_t size = group->items[0], first = group->index[0] * size;
  for (uint32_t item = 0; item < size; ++item) shared[item] = in[first + item];
  for (uint32_t item = 0; item < size; ++item) out[first + item] = shared[size - 1 - item];
}
extern const uint32_t kernel_fails_parameters[] = {0};
void kernel_fails(const void* const*, const Group*) { throw std::runtime_error("out of luck"); }
}
"""
_OPENCL = """
kernel void scale(global float* out, global const float* in, float factor, int n) {
  const int i = get_global_id(0);
  if (i < n) out[i] = in[i] * factor;
}
kernel void places(global int* out) {
  const int number = (get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0);
  const int size = get_local_size(0) * get_local_size(1) * get_local_size(2);
  const int item = (get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0);
  out[number * size + item] = 1000 * number + item;
}
kernel void reverse(global int* out, global const int* in, local int* shared) {
  const int item = get_local_id(0), size = get_local_size(0);
  shared[item] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = shared[size - 1 - item];
}
"""


@functools.cache
def _compiled_for_host(source: str) -> bytes:
    compiler = shutil.which(os.environ.get("CXX") or "c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    with tempfile.TemporaryDirectory() as folder:
        text, result = Path(folder, "kernels.cpp"), Path(folder, "kernels.so")
        text.write_text(source, "utf-8")
        options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-w"]
        subprocess.run([compiler, *options, str(text), "-o", str(result)], check=True)
        return result.read_bytes()


KERNELS: dict[str, Callable[[], bytes]] = {
    "elf-host": lambda: _compiled_for_host(_HOST),
    "opencl-c": _OPENCL.encode,
}
BROKEN = {
    "elf-host": b"no shared object",
    "opencl-c": b"kernel void scale(global float* out) { out[0] = missing; }",
}


def kernels(api: ModuleType, device: int = 0) -> bytes:
    """The functions that are described above, as code for the device."""
    code_format = api.code_format(device)
    if code_format not in KERNELS:
        pytest.skip(f"{Path(__file__).name} has no kernels in {code_format}")
    return KERNELS[code_format]()


class Scaling:
    """Two arrays, one of which becomes a multiple of the other."""

    def __init__(self, api: ModuleType, module: Any, make_buffer: Any, device: int = 0) -> None:
        self._api = api
        self.function = api.find_function(module, "scale")
        self.out, self.source = make_buffer(4 * COUNT, device), make_buffer(4 * COUNT, device)
        self.source.write(VALUES.view(np.uint8))
        self.out.write(np.zeros(4 * COUNT, np.uint8))
        self.device = device

    def arguments(self, factor: float, count: int = COUNT) -> list[Any]:
        kind = self._api.ArgumentKind
        return [
            (kind.WRITTEN, self.out.address, self.out.bytes),
            (kind.READ, self.source.address, self.source.bytes),
            struct.pack("f", factor),
            struct.pack("i", count),
        ]

    def launch(self, stream: Any, factor: float, count: int = COUNT) -> None:
        self._api.launch_function(
            stream, self.function, (16, 1, 1), (64, 1, 1), 0, self.arguments(factor, count)
        )

    def read(self) -> Any:
        return np.frombuffer(self.out.read(), np.float32)
