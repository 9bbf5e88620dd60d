"""A device with a runtime and three kernel families; all else uses the CPU fallback."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from maintenance.installing import Installed

pytestmark = [
    pytest.mark.xdist_group("partial"),
    pytest.mark.nightly,
]

# Two families in full, and one that declines a type, an operation and a rank.
FILL_AND_COPY = """
#include "reference/kernels.h"

#include "simulator/kernels/submit_kernel.h"

namespace torch_foo::device {

Answer fill(const Launch& launch, const TensorView& out, const Scalar& value) {
  return simulator::submit(launch, reference::choose_fill(out), out, value);
}

Answer copy(const Launch& launch, const TensorView& out, const TensorView& in) {
  return simulator::submit(launch, reference::choose_copy(out, in), out, in);
}

}  // namespace torch_foo::device
"""
UNARY = """
#include "reference/kernels.h"

#include "simulator/kernels/submit_kernel.h"

namespace torch_foo::device {

Answer unary(const Launch& launch, UnaryOp op, const TensorView& out, const TensorView& in,
             const UnaryParams& params) {
  if (in.dtype == DType::kFloat64) return Answer::unsupported("no double precision");
  if (in.rank > 8) return Answer::unsupported("more than eight dimensions");
  if (op == UnaryOp::kErf && in.dtype == DType::kFloat32) return Answer::unsupported("no erf");
  return simulator::submit(launch, reference::choose_unary(op, out, in), out, in, params);
}

}  // namespace torch_foo::device
"""
CMAKE = """
file(GLOB sources "${CMAKE_CURRENT_SOURCE_DIR}/reference/*.cpp")
list(FILTER sources INCLUDE REGEX "/(unary|cursor|conversion|elementwise|fill|copy|dense|special)[a-z_]*[.]cpp$")
target_sources(${DEVICE_TARGET} PRIVATE ${sources})
"""  # noqa: E501
NATIVE = {"fill", "copy", "unary"}
UNSUPPORTED = {
    "unary dtype=float64": "no double precision",
    "unary dtype=float32 op=erf": "no erf",
    "unary rank=16": "more than eight dimensions",
}

MODEL = """
import json, torch
from torch import nn
from torch.nn.functional import cross_entropy

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.attend = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.convolve = nn.Sequential(nn.Conv1d(16, 8, 3, padding=1), nn.BatchNorm1d(8), nn.SiLU())
        self.recur = nn.LSTM(8, 8, batch_first=True)
        self.out = nn.Linear(8, 11)

    def forward(self, tokens):
        x = self.attend(self.embed(tokens))
        x = self.convolve(x.transpose(1, 2)).transpose(1, 2)
        return self.out(self.recur(x)[0])

def losses(device):
    torch.manual_seed(0)
    model, tokens = Model().to(device), torch.randint(11, (4, 12)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(8):
        loss = cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()

print(json.dumps([list(losses("cpu")), list(losses("foo"))]))
torch.foo.fallback_report()
"""

# The host copies views for a device that cannot: memory between the elements must not change.
VIEWS = """
import torch
x = torch.arange(24.0).reshape(4, 6)
y = x.to("foo")
print(y[1:, ::2].cpu().equal(x[1:, ::2]), y.t()[::2].contiguous().cpu().equal(x.t()[::2]))
y[:, 1::2] = torch.full((4, 3), -1.0)
x[:, 1::2] = -1
y[::2, ::2] = y[1::2, ::2]
x[::2, ::2] = x[1::2, ::2]
print(y.cpu().equal(x), y.to("foo:1")[0, ::3].tolist() == x[0, ::3].tolist())
"""
EXAMPLE = """
import sys
import torch
sys.path.append("examples")
import gpt
torch.testing.assert_close(gpt.train("foo", 2), gpt.train("cpu", 2), rtol=1e-4, atol=0)
torch.foo.fallback_report()
"""


@dataclass(frozen=True)
class Partial:
    """The device's folder, and a project that uses it."""

    folder: Path
    full: Installed

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the project's Python, with this device as the one to build."""
        return self.full.run(*arguments, FOO_DEVICE=str(self.folder), **environment)

    def test(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run tests of the project."""
        return self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)


def add_runtime(full: Installed, folder: Path) -> None:
    """Write a device into the folder: the simulator's runtime, in one file.

    Its collectives are left out, as they add by the reference's kernels.
    """
    folder.mkdir(parents=True)
    simulator = full.project / "device" / "simulator"
    others = {"bindings.cpp", "collectives.cpp", "collective_work.cpp", "messages.cpp", "ranks.cpp"}
    parts = sorted({path.name for path in simulator.glob("*.cpp")} - others)
    runtime = "".join(f'#include "simulator/{name}"\n' for name in parts)
    (folder / "runtime.cpp").write_text(runtime)


@pytest.fixture(scope="module")
def partial(install: Callable[..., Installed], tmp_path_factory: pytest.TempPathFactory) -> Partial:
    full = install("full", preset="full")
    folder = tmp_path_factory.mktemp("devices") / "partial"
    add_runtime(full, folder)
    (folder / "kernels").mkdir()
    (folder / "kernels" / "fill_and_copy.cpp").write_text(FILL_AND_COPY)
    (folder / "kernels" / "unary.cpp").write_text(UNARY)
    (folder / "device.cmake").write_text(CMAKE)
    done = Partial(folder, full)
    update = done.test("device/tests/kernels", "--write-support")
    assert update.returncode == 0, update.stdout[-6000:] + update.stderr[-6000:]
    return done


def test_write_support_declares_unsupported_calls_in_short_lines(partial: Partial) -> None:
    table, *lines = (partial.folder / "support.toml").read_text().splitlines()
    assert table == "[unsupported]"
    said = {json.loads(line): json.loads(reason) for line, reason in map(_halves, lines)}
    assert {
        line: reason for line, reason in said.items() if line.startswith("unary")
    } == UNSUPPORTED
    missing = said.keys() - UNSUPPORTED
    assert all(said[family] == f"{family} is not implemented by this device" for family in missing)
    entries_header = partial.full.project / "device" / "include" / "foo" / "device" / "entries.h"
    listed = entries_header.read_text().split("#define DEVICE_FAMILIES(X)")[1].split("#define")[0]
    # convert_layout has no declaration: its tests are those of its group, layouts.
    families = set(re.findall(r"X\((\w+)\)", listed)) - {"convert_layout"}
    assert missing == families - NATIVE


def _halves(line: str) -> list[str]:
    return line.split(" = ", 1)


@pytest.mark.parametrize(
    "tests",
    [
        [f"device/tests/kernels/test_{family}.py" for family in ("copy", "matmul", "unary")],
        pytest.param(["device/tests"], marks=pytest.mark.nightly),
    ],
    ids=["some", "all"],
)
def test_the_partial_device_passes_the_conformance_tests(
    tests: list[str], partial: Partial
) -> None:
    done = partial.test(*tests)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    assert re.search(r"^copy +yes +yes", done.stdout, re.MULTILINE)
    assert re.search(r"^unary .*part", done.stdout, re.MULTILINE)
    assert re.search(r"^matmul +no +no", done.stdout, re.MULTILINE)


def test_a_support_line_about_a_supported_call_fails_the_run(partial: Partial) -> None:
    path = partial.folder / "support.toml"
    before = path.read_text()
    try:
        path.write_text(before + '"fill dtype=float32" = "?"\n')
        done = partial.test("device/tests/kernels/test_fill.py")
    finally:
        path.write_text(before)
    assert done.returncode == 1
    assert "works: remove 'fill dtype=float32' from support.toml" in done.stdout


def test_models_train_as_on_the_cpu(partial: Partial) -> None:
    library = partial.full.project / "build" / "device-partial"
    done = partial.run("-c", MODEL, LD_LIBRARY_PATH=str(library), FOO_FALLBACK="silent")
    assert done.returncode == 0, done.stderr[-6000:]
    wanted, losses = json.loads(done.stdout.splitlines()[0])
    assert losses == pytest.approx(wanted, rel=1e-4)
    assert losses[-1] < losses[0]
    assert "matmul is not implemented by this device" in done.stdout


def test_a_device_without_kernels_trains_an_example(
    install: Callable[..., Installed],
    build_device: Callable[[Installed, str, Path], None],
    tmp_path: Path,
) -> None:
    full = install("full", preset="full")
    bare = Partial(tmp_path / "bare", full)
    add_runtime(full, bare.folder)
    build = tmp_path / "build"
    build_device(full, str(bare.folder), build)
    there = {"LD_LIBRARY_PATH": str(build), "FOO_FALLBACK": "silent"}
    views = bare.run("-c", VIEWS, **there)
    assert views.stdout.split() == ["True"] * 4, views.stdout + views.stderr
    example = bare.run("-c", EXAMPLE, **there)
    assert example.returncode == 0, example.stdout + example.stderr
    report = example.stdout.split("Write these kernels next:")[1]
    for operator in ("copy_", "addmm", "native_layer_norm", "add.Tensor"):
        assert f"aten::{operator} " in report
