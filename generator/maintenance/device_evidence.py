"""Tests and times a device on this machine: ``python -m maintenance.device_evidence opencl``.

Renders `full`, builds it for the device, and runs the device's tests and the examples, each for a
few minutes at most. Adds a row to `benchmarks/devices.json`, the source of `docs/devices.md`. The
machine needs a driver, a compiler and this checkout. Without a network, set PIP_NO_INDEX and
PIP_FIND_LINKS.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from maintenance.installing import Installed, link_packages, make_environment
from torchsmith import git
from torchsmith.render import Job, render
from torchsmith.template import TEMPLATE

STORE = TEMPLATE / "benchmarks" / "devices.json"
FAMILIES = ("copy", "unary", "binary", "reduce", "softmax", "matmul", "gather")
TESTS = ("device/tests/runtime", *(f"device/tests/kernels/test_{it}.py" for it in FAMILIES))
NIGHTLY = ("simulator", "opencl on pthread", "opencl on cpu", "vulkan on llvmpipe")
"""The starts of their names; pthread and cpu are PoCL's."""

STEP = """
import statistics, sys, time, torch, gpt
from torch.nn import functional
device = sys.argv[1]
torch.manual_seed(0)
model = gpt.GPT().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
draws = torch.Generator().manual_seed(0)
batch = gpt.passages(draws).to(device)
times = []
for _ in range(12):
    begin = time.perf_counter()
    optimizer.zero_grad()
    scores = model(batch[:, :-1])
    functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten()).backward()
    optimizer.step()
    torch.accelerator.synchronize() if device != "cuda" else torch.cuda.synchronize()
    times.append(time.perf_counter() - begin)
print(statistics.median(times[2:]) * 1000)
"""
"""Prints the milliseconds of a training step of examples/gpt.py."""


@dataclass(frozen=True)
class Evidence:
    """A row of docs/devices.md. Times are milliseconds of a training step."""

    device: str
    status: str
    date: str
    commit: str
    torch: str
    passed: int
    failed: int
    skipped: int
    examples: list[str]
    step_ms: float | None
    cuda_step_ms: float | None


class Run:
    """A project that is built for one device."""

    def __init__(self, folder: Path, device: str) -> None:
        """Render and build it in an empty folder; raises SystemExit with the compiler's output."""
        project = folder / "torch-foo"
        render(project, Job({"preset": "full"}))
        make_environment(folder / "venv", link_packages(folder / "packages"))
        self.device = device
        self.installed = Installed("full", project, folder / "venv" / "bin" / "python")
        # Compilers of other machines may print other warnings.
        built = self.installed.build(FOO_DEVICE=device, CMAKE_COMPILE_WARNING_AS_ERROR="OFF")
        if built.returncode:
            raise SystemExit(f"{device} does not compile:\n{built.stdout[-4000:]}")

    def run(self, *arguments: str, minutes: float, folder: str = ".", **variables: str) -> str:
        """Return the output of a command, which gets SIGINT after ``minutes``."""
        with subprocess.Popen(
            [str(self.installed.python), *arguments],
            cwd=self.installed.project / folder,
            env={**self.installed.environment, "FOO_DEVICE": self.device, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            try:
                said, _ = running.communicate(timeout=60 * minutes)
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGINT)
                said, _ = running.communicate()
        return said

    def counts(self, minutes: float) -> dict[str, int]:
        """Run the device's tests; return how many passed, failed and were skipped."""
        said = self.run("-m", "pytest", "-q", "-n", str(os.cpu_count()), *TESTS, minutes=minutes)
        last = said.strip().splitlines()[-1]
        found = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}
        return {"failed": found.get("failed", 0) + found.get("errors", 0)} | {
            word: found.get(word, 0) for word in ("passed", "skipped")
        }

    def examples(self, minutes: float) -> list[str]:
        """Return the examples that run, with those that need the CPU marked."""
        commands = {
            "quickstart.py": ("quickstart.py",),
            "gpt.py": ("gpt.py", "--steps", "5"),
            "gpt.py --amp bf16": ("gpt.py", "--steps", "5", "--amp", "bf16"),
        }
        ran = []
        for name, arguments in commands.items():
            said = self.run(*arguments, minutes=minutes / len(commands), folder="examples")
            if "Nothing ran on the CPU" in said:
                ran.append(name)
            elif "Write these kernels next" in said and "Traceback" not in said:
                ran.append(f"{name}, partly on the CPU")
        return ran

    def step(self, device: str, minutes: float) -> float | None:
        """Return the milliseconds of a training step, or None if it does not run."""
        said = self.run("-c", STEP, device, minutes=minutes, folder="examples")
        last = said.strip().rpartition("\n")[2]
        return round(float(last), 2) if re.fullmatch(r"[\d.]+", last) else None


def judge(name: str, counts: dict[str, int], examples: list[str]) -> str:
    """Return the status that follows from the results."""
    tested = counts["passed"] + counts["failed"]
    trains = "gpt.py" in examples
    if trains and tested and not counts["failed"] and name.startswith(NIGHTLY):
        return "stable"
    if trains and tested and counts["failed"] <= tested / 100:
        return "beta"
    return "runs" if examples else "compiles"


def table() -> str:
    """Return the table of docs/devices.md."""
    known = json.loads(STORE.read_text("utf-8"))
    if not known:
        return "The command has not been run for a release yet.\n"
    rows = [
        "| device | status | passed, failed, skipped | examples | training step | evidence |",
        "|---|---|---|---|---|---|",
    ]
    for each in (Evidence(**it) for it in known):
        step = f"{each.step_ms:.1f} ms" if each.step_ms else ""
        if each.cuda_step_ms and each.step_ms:
            step += f", {each.step_ms / each.cuda_step_ms:.1f} of torch.cuda's"
        rows.append(
            f"| {each.device} | {each.status} | {each.passed:,}, {each.failed:,}, {each.skipped:,} "
            f"| {'; '.join(f'`{it}`' for it in each.examples)} | {step} "
            f"| {each.date}, {each.commit}, PyTorch {each.torch} |"
        )
    return "\n".join(rows) + "\n"


def gather(folder: Path, name: str, minutes: float) -> Evidence:
    """Build the project for a device in an empty folder, and run its tests and examples."""
    began = time.monotonic()
    run = Run(folder, name)
    print(f"built after {time.monotonic() - began:.0f} s", flush=True)
    facts = run.run(
        "-c", "import torch; print(torch.__version__); print(torch.foo.get_device_name(0))",
        minutes=1,
    ).splitlines()  # fmt: skip
    torch_version, chosen = facts[-2:]
    device = name if name == "simulator" else f"{name} on {chosen}"
    counts = run.counts(minutes * 0.6)
    print(f"{device}: {counts}")
    examples = run.examples(minutes * 0.3)
    has_cuda = "True" in run.run("-c", "import torch; print(torch.cuda.is_available())", minutes=1)
    return Evidence(
        device=device,
        status=judge(device, counts, examples),
        date=date.today().isoformat(),
        commit=git.git(TEMPLATE, "rev-parse", "--short", "HEAD").strip(),
        torch=torch_version,
        examples=examples,
        step_ms=run.step("foo", minutes * 0.1),
        cuda_step_ms=run.step("cuda", minutes * 0.1) if has_cuda else None,
        **counts,
    )


def main() -> None:
    """Run everything, and write the row."""
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(prog="device_evidence", description=summary)
    parser.add_argument("device", help="a folder of device/: simulator, opencl, ...")
    parser.add_argument("--minutes", type=float, default=5, help="of tests and examples, at most")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        row = gather(Path(folder), options.device, options.minutes)
    known = json.loads(STORE.read_text("utf-8")) if STORE.exists() else []
    rows = sorted(
        [it for it in known if it["device"] != row.device] + [asdict(row)],
        key=lambda it: it["device"],
    )
    STORE.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")
    print(f"{row.device}: {row.status}")


if __name__ == "__main__":
    main()
