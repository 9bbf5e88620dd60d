"""The measured cases and their limits."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

from names import DEVICE, ENV_PREFIX, PACKAGE
from timing import MICROSECONDS, Case, Figure

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

ONE = "x = torch.ones(1, device=device)"
LARGE = "x, y, z = (torch.ones(1 << 20, device=device) for _ in range(3)); sync()"
COPY = (
    "host = torch.ones(1 << 24); there = torch.ones(1 << 24, device=device); sync()\n"
    "other = torch.ones(1 << 24)"
)

MATRIX = (
    "x = torch.randn({0}, {0}, device=device); y = torch.randn({0}, {0}, device=device); sync()"
)
MLP = """
torch.manual_seed(0)
layers = [layer for _ in range(3) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
model = torch.nn.Sequential(*layers).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(64, 256).to(device), torch.randn(64, 256).to(device)

def step():
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    sync()
"""
GPT = f"""
import sys
sys.path.insert(0, {str(EXAMPLES)!r})
import gpt
torch.manual_seed(0)
model = gpt.GPT().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
letters = torch.randint(len(gpt.LETTERS), (gpt.BATCH, gpt.TIME + 1)).to(device)

def step():
    optimizer.zero_grad()
    scores = model(letters[:, :-1])
    torch.nn.functional.cross_entropy(scores.flatten(0, 1), letters[:, 1:].flatten()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    sync()
"""

SIGNALS = "x = torch.randn(1024, 1024, dtype=torch.complex64).to(device); sync()"
DEFINITE = "x = torch.randn(64, 128, 128); x = (x @ x.mT + torch.eye(128)).to(device); sync()"

# Allocating and freeing memory: numbers of float32 elements.
EMPTY = {"4 B": 1, "4 KiB": 1 << 10, "1 MiB": 1 << 18, "64 MiB": 1 << 24}

HOST_TIME = [
    *(
        Case(f"empty, {size}", f"torch.empty({count}, device=device)", limit=1.2)
        for size, count in EMPTY.items()
    ),
    Case("view", "x.view(1, 1)", ONE, limit=1.2),
    Case("add, 1 element", "x + x", ONE, limit=1.2),
    Case("add a scalar, 1 element", "x + 2", ONE),
    Case("mul in place, 1 element", "x.mul_(x)", ONE),
    Case("sum, 1 element", "x.sum()", ONE),
    Case("item", "x.item()", ONE, limit=5),
]

# Measured with the wait for the device. Operators on one element are measured without it.
WORK = [
    Case("add, 1M elements", "x + y; sync()", LARGE, 10, 40, limit=1.1),
    Case("add with out=, 1M elements", "torch.add(x, y, out=z); sync()", LARGE, 10, 40, limit=1.1),
    Case("fill in place, 1M elements", "x.fill_(2.0); sync()", LARGE, 10, 40, limit=1.2),
    Case("sum, 1M elements", "x.sum(); sync()", LARGE, 10, 40, limit=1.3),
    Case("mm, 64 x 64", "x @ y; sync()", MATRIX.format(64), 10, 40, limit=2),
    Case("mm, 512 x 512", "x @ y; sync()", MATRIX.format(512), 1, 60, limit=1.1),
    Case("fft, 1024 rows of 1024", "torch.fft.fft(x); sync()", SIGNALS, 1, 40, limit=1.3),
    Case(
        "cholesky, 64 of 128 x 128",
        "torch.linalg.cholesky_ex(x); sync()",
        DEFINITE,
        1,
        40,
        limit=1.3,
    ),
    Case("training step of an MLP, 3 x 256, batch 64", "step()", MLP, 1, 100, limit=1.5),
    Case("training step of examples/gpt.py", "step()", GPT, 1, 50, limit=1.4),
]

# The limit of a copy between the devices is 1 / 0.9 of the time of a copy within the CPU.
COPIES = [
    Case("host to device, 64 MiB", "there.copy_(host); sync()", COPY, 1, 30, limit=1 / 0.9),
    Case("device to host, 64 MiB", "other.copy_(there); sync()", COPY, 1, 30, limit=1 / 0.9),
]

# Measured while the device has 100 ms of work or more. The CPU has finished its own by then.
BUSY = MATRIX.format(1024) + "; host = torch.ones(1 << 18); pinned = host.pin_memory()"
BUSY_BEFORE = (
    "import time; start = time.perf_counter(); x @ y; sync()\n"
    "for _ in range(int(0.1 / (time.perf_counter() - start)) + 1): x @ y"
)
WITHOUT_WAITING = {
    "tensor of a number": "torch.tensor(3.0, device=device)",
    "host to device, 64 KiB": "host[:1 << 14].to(device)",
    "pinned to device as float16": "pinned.to(device, torch.float16, non_blocking=True)",
}
BEHIND_WORK = [
    Case(
        f"{name}, with 100 ms of work queued",
        statement,
        BUSY,
        calls=1,
        rounds=20,
        excess_limit=1000,
        before=BUSY_BEFORE,
    )
    for name, statement in WITHOUT_WAITING.items()
]

LOADER = """
rows = torch.utils.data.TensorDataset(torch.randn(640, 256), torch.randn(640, 256))
loader = torch.utils.data.DataLoader(rows, batch_size=64, pin_memory={0})

def epoch():
    for inputs, targets in loader:
        inputs = inputs.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    sync()
"""
LOADERS = [
    Case(
        f"10 steps of the MLP from a DataLoader, {name}",
        "epoch()",
        MLP + LOADER.format(pinned),
        calls=1,
        rounds=20,
    )
    for name, pinned in (("pageable", False), ("pinned", True))
]

FALLBACK_STATEMENT = "torch.special.bessel_j0(x)"
FALLBACK = {
    "0": Case("fallback, 1 element, copying", FALLBACK_STATEMENT, ONE, excess_limit=12),
    "1": Case("fallback, 1 element, host_address", FALLBACK_STATEMENT, ONE, excess_limit=4),
}


def fallback_case() -> Case:
    """Return the case for this process's access to the device's memory."""
    return FALLBACK["1" if os.environ.get(f"{ENV_PREFIX}_SIMULATOR_HOST_ADDRESS") == "1" else "0"]


def import_time(runs: int = 7) -> Figure:
    """Measure importing PyTorch, and importing the package after it, in new processes.

    The first process only compiles the package to bytecode, as pip does.
    """
    code = (
        "import time; start = time.perf_counter(); import torch; middle = time.perf_counter()\n"
        f"import {PACKAGE}; print(middle - start, time.perf_counter() - middle)"
    )
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    torch_times, package_times = [], []
    for run in range(runs + 1):
        output = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        torch_time, package_time = (float(word) * MICROSECONDS for word in output.split())
        if run > 0:
            torch_times.append(torch_time)
            package_times.append(package_time)
    alone = statistics.median(torch_times)
    return Figure(
        f"import torch, with {DEVICE}",
        alone,
        alone + statistics.median(package_times),
        excess_limit=50_000,
    )
