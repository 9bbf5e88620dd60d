"""Counts the host instructions of an operator, which do not depend on other load of the machine.

``python benchmarks/instructions.py`` needs valgrind, and takes some minutes for each device. It
counts the calling thread alone: on the CPU device, on this one, and on this one with the layer
`null`, which accepts launches and does nothing, so that it counts the host's part only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from names import DEVICE, ENV_PREFIX
from rich.console import Console
from rich.table import Table

STATEMENTS = {
    "add": "torch.add(x, x)",
    "mul_": "x.mul_(y)",
    "empty": "torch.empty(1, device=device)",
    "view": "x.view(1, 1)",
    "sum": "x.sum()",
}

CALLS = 200

PROGRAM = """
import sys, torch
torch.set_num_threads(1)
device, statement, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
x, y = torch.ones(1, device=device), torch.ones(1, device=device)
code = compile(statement, "statement", "eval")
for _ in range(calls):
    eval(code)
"""


def counted(device: str, statement: str, calls: int, layers: str) -> int:
    """Return the instructions of the main thread of a process that makes ``calls`` calls."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        command = [
            "valgrind",
            "--tool=callgrind",
            "--separate-threads=yes",
            f"--callgrind-out-file={out}",
            *(sys.executable, "-c", PROGRAM, device, statement, str(calls)),
        ]
        environment = {
            **os.environ,
            f"{ENV_PREFIX}_DEVICE_LAYERS": layers,
            # valgrind's address space is too small for more devices or memory of the simulator.
            f"{ENV_PREFIX}_SIMULATOR_DEVICES": "1",
            f"{ENV_PREFIX}_SIMULATOR_MEMORY": str(2**30),
            "PYTHONHASHSEED": "0",
        }
        subprocess.run(command, env=environment, check=True, capture_output=True)
        main = next(path for path in sorted(Path(folder).iterdir()) if path.name.endswith("-01"))
        totals = re.search(r"^(?:totals|summary): (\d+)", main.read_text(), re.MULTILINE)
        assert totals is not None
        return int(totals[1])


def per_call(device: str, statement: str, layers: str = "") -> float:
    """Return the instructions of one call, after warm-up calls."""
    few, many = (counted(device, statement, calls, layers) for calls in (CALLS, 2 * CALLS))
    return (many - few) / CALLS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(STATEMENTS), help="add, mul_, ...")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    arguments = parser.parse_args()
    table = Table("operator", "cpu", "above the device", "", DEVICE, "")
    figures = {}
    for name in arguments.names:
        statement = STATEMENTS[name]
        cpu = per_call("cpu", statement)
        null, own = per_call(DEVICE, statement, "null"), per_call(DEVICE, statement)
        figures[name] = {"cpu": cpu, "null": null, DEVICE: own}
        table.add_row(
            name,
            f"{cpu:,.0f}",
            f"{null:,.0f}",
            f"{null / cpu:.2f}x",
            f"{own:,.0f}",
            f"{own / cpu:.2f}x",
        )
    Console().print(table)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
