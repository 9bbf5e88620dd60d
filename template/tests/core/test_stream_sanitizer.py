"""The layer `streams` under PyTorch: it reports races, and nothing in correct programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
from support import needs, run_python

pytestmark = needs(torch.float32)

UNORDERED = f"""
import torch

def produce(side, a):
    with torch.{DEVICE}.stream(side):
        return a @ a

def consume(b):
    return b + 1

a = torch.ones(64, 64, device="{DEVICE}")
torch.{DEVICE}.synchronize()
side = torch.{DEVICE}.Stream()
b = produce(side, a)
# order
c = consume(b)
print("sum", c.sum().item())
"""
WAIT = f"torch.{DEVICE}.current_stream().wait_stream(side)"

REUSED = f"""
import torch

def use(side, x):
    side.wait_stream(torch.{DEVICE}.current_stream())
    with torch.{DEVICE}.stream(side):
        return x * 2

def free(tensors):
    tensors.clear()

def make():
    return torch.empty(1 << 16, device="{DEVICE}")

side = torch.{DEVICE}.Stream()
tensors = [make().fill_(1)]
twice = use(side, tensors[0])
# order
free(tensors)
new = make()
new.fill_(3)
print("sum", new.sum().item())
"""
RECORD = "tensors[0].record_stream(side)"

TRAINING = f"""
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).to("{DEVICE}")
optimizer = torch.optim.AdamW(model.parameters())
side = torch.{DEVICE}.Stream()
for _ in range(3):
    batch = torch.randn(16, 8).pin_memory()
    with torch.{DEVICE}.stream(side):
        inputs = batch.to("{DEVICE}", non_blocking=True)
    torch.{DEVICE}.current_stream().wait_stream(side)
    inputs.record_stream(torch.{DEVICE}.current_stream())
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("sum", loss.item())
"""


def run(tmp_path: Path, code: str, mode: str = "") -> tuple[int, str, Path]:
    """Run the program under the layer. Return its exit status, its output and its source."""
    script = tmp_path / "program.py"
    script.write_text(code)
    environment = {f"{ENV_PREFIX}_DEVICE_LAYERS": "streams", f"{ENV_PREFIX}_STREAMS": mode}
    launch = f"import runpy; runpy.run_path({str(script)!r})"
    result = run_python(launch, environment, check=False)
    return result.returncode, result.stdout + result.stderr, script


def stack_under(title: str, text: str) -> str:
    return text.split(f"{title}:\n")[1].split("\n\n")[0]


def at(script: Path, function: str, source: str) -> re.Pattern[str]:
    """Return a pattern of a frame of ``function`` at the only line that contains ``source``."""
    lines = script.read_text("utf-8").splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if source in line]
    return re.compile(rf'File "{re.escape(str(script))}", line {number}, in {function}\n')


def test_a_read_that_does_not_wait_for_its_writer_is_reported(tmp_path: Path) -> None:
    ended, text, script = run(tmp_path, UNORDERED)
    assert ended != 0
    assert "RuntimeError: aten::add.Tensor on the default stream of device 0 reads" in text
    assert re.search(r"that aten::mm\S* on stream \d+ of device 0 writes", text)
    assert "nothing orders the two" in text
    earlier = stack_under("The earlier work was enqueued here", text)
    assert at(script, "produce", "return a @ a").search(earlier)
    later = stack_under("The later work was enqueued here", text)
    assert at(script, "consume", "return b + 1").search(later)


def test_a_missing_record_stream_is_reported(tmp_path: Path) -> None:
    ended, text, script = run(tmp_path, REUSED)
    assert ended != 0
    assert "record_stream is missing" in text
    stacks = {
        "The first tensor was freed here": at(script, "free", "tensors.clear()"),
        "The second one was made here": at(script, "make", "return torch.empty"),
        "The earlier work was enqueued here": at(script, "use", "return x * 2"),
        "The later work was enqueued here": at(script, "<module>", "new.fill_(3)"),
    }
    for title, frame in stacks.items():
        assert frame.search(stack_under(title, text) + "\n"), title


@pytest.mark.parametrize(
    "code",
    [UNORDERED.replace("# order", WAIT), REUSED.replace("# order", RECORD), TRAINING],
    ids=["wait_stream", "record_stream", "training"],
)
def test_a_correct_program_has_no_report(tmp_path: Path, code: str) -> None:
    ended, text, _ = run(tmp_path, code)
    assert ended == 0, text
    assert text.startswith("sum")
    assert len(text.splitlines()) == 1, text


def test_a_report_can_be_printed_instead_of_raised(tmp_path: Path) -> None:
    ended, text, _ = run(tmp_path, UNORDERED, "print")
    assert ended == 0
    assert re.search(r"^sum ", text, re.MULTILINE)  # the value depends on the race
    assert text.count("nothing orders the two") == 1
