"""A new kernel family needs a declaration, a line in the list, a kernel and a test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from commanding import succeed
from rendering import Renderer, contents

# It builds a device, without PyTorch.
pytestmark = pytest.mark.nightly

DECLARATION = """
// out is in, with the rows from `first` on negated. Both float32, of rank 2 and the same sizes.
Answer negate_rows(const Launch& launch, const TensorView& out, const TensorView& in, int64_t first);
"""  # noqa: E501
KERNEL = """
#include "simulator/kernels/submit_kernel.h"

namespace torch_foo::device {
namespace {

void negate(const TensorView& out, const TensorView& in, int64_t first) {
  for (int64_t i = 0; i < out.sizes[0]; ++i) {
    for (int64_t j = 0; j < out.sizes[1]; ++j) {
      const float value = static_cast<const float*>(in.data)[i * in.strides[0] + j * in.strides[1]];
      static_cast<float*>(out.data)[i * out.strides[0] + j * out.strides[1]] = i < first ? value : -value;
    }
  }
}

}  // namespace

Answer negate_rows(const Launch& launch, const TensorView& out, const TensorView& in, int64_t first) {
  using Choice = reference::Choice<decltype(&negate)>;
  const bool has_kernel = in.dtype == DType::kFloat32 && out.dtype == in.dtype && in.rank == 2;
  return simulator::submit(launch, has_kernel ? Choice(&negate) : Choice("element type or rank"), out, in, first);
}

}  // namespace torch_foo::device
"""  # noqa: E501
TEST = """
import struct

import pytest


@pytest.mark.parametrize("layers", [[], ["validate"], ["trace", "validate"]])
def test_negate_rows(api, make_buffer, stream, layers):
    before = api.layers()
    api.set_layers(layers)
    out, source = make_buffer(16), make_buffer(16)
    source.write(struct.pack("4f", 1, 2, 3, 4))
    views = [buffer.view(0, api.DType.float32, [2, 2], [2, 1]) for buffer in (out, source)]
    assert api.negate_rows(stream, *views, 1) is None
    api.synchronize(stream)
    assert struct.unpack("4f", out.read()) == (1, 2, -3, -4)
    double = source.view(0, api.DType.float64, [2], [1])
    assert api.negate_rows(stream, double, double, 0, probe=True) == "element type or rank"
    api.set_layers(before)


def test_validate_checks_the_views(api, make_buffer, stream):
    if api.device_count() < 2:
        pytest.skip("needs two devices")
    before = api.layers()
    api.set_layers(["validate"])
    here, there = (make_buffer(16, device).view(0, api.DType.float32, [2, 2], [2, 1]) for device in (0, 1))
    says = r"contract of negate_rows: argument 2 float32 \\(2, 2\\) .* is in memory of device 1"
    with pytest.raises(api.DeviceError, match=says):
        api.negate_rows(stream, here, there, 1)
    api.set_layers(before)


def test_functions_lists_the_family(api):
    assert ("families", "negate_rows", True) in api.functions()
"""  # noqa: E501


def replace_once(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


def test_a_family_needs_a_declaration_a_list_entry_a_kernel_and_a_test(
    render: Renderer, tmp_path: Path
) -> None:
    project = render.project(tmp_path / "project", preset="full")
    before = contents(project)
    device = project / "device"
    headers = device / "include" / "foo" / "device"
    end = "\n}  // namespace torch_foo::device\n"
    replace_once(headers / "elementwise.h", end, DECLARATION + end)
    replace_once(
        headers / "entries.h",
        "  X(convert_layout)\n",
        "  X(convert_layout)        \\\n  X(negate_rows)\n",
    )
    (device / "simulator" / "kernels" / "negate_rows.cpp").write_text(KERNEL, "utf-8")
    test = device / "tests" / "kernels" / "test_negate_rows.py"
    test.write_text(TEST, "utf-8")
    after = contents(project)
    assert {name for name in after if after[name] != before.get(name)} == {
        "device/include/foo/device/elementwise.h",
        "device/include/foo/device/entries.h",
        "device/simulator/kernels/negate_rows.cpp",
        "device/tests/kernels/test_negate_rows.py",
    }

    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "5 passed" in succeed(*command, test, cwd=project)
