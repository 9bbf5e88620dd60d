"""Measures the host time of operators, compared with the CPU device in the same run.

``python benchmarks/run.py`` prints a table; ``--json FILE`` writes the figures as well.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from cases import (
    BEHIND_WORK,
    COPIES,
    FALLBACK,
    HOST_TIME,
    LOADERS,
    WORK,
    fallback_case,
    import_time,
)
from names import DEVICE, ENV_PREFIX
from rich.console import Console
from rich.table import Table
from timing import Case, Figure, measure


def fallback_in_a_process(host_address: str, quick: bool) -> Figure:
    """Measure the fallback in a process of its own, where the setting takes effect."""
    command = [sys.executable, __file__, "--only-fallback", *["--quick"] * quick]
    environment = {**os.environ, f"{ENV_PREFIX}_SIMULATOR_HOST_ADDRESS": host_address}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return Figure(**json.loads(output.stdout))


def shortened(case: Case, quick: bool) -> Case:
    return replace(case, rounds=max(5, case.rounds // 20)) if quick else case


def collect(quick: bool) -> list[Figure]:
    figures = [measure(shortened(case, quick)) for case in HOST_TIME + WORK]
    figures += [fallback_in_a_process(setting, quick) for setting in FALLBACK]
    figures += [measure(shortened(case, quick)) for case in COPIES + BEHIND_WORK + LOADERS]
    return [*figures, import_time(3 if quick else 7)]


def limit_of(figure: Figure) -> str:
    if figure.limit is not None:
        return f"{figure.limit:.2f}x"
    return "" if figure.excess_limit is None else f"+{figure.excess_limit:,.0f}"


def table(figures: list[Figure], threads: str = "one thread") -> Table:
    """Return the figures as a table, in microseconds."""
    result = Table("case", title=f"{DEVICE} and the CPU device, {threads}, median µs per call")
    for column in ("cpu", DEVICE, "ratio", "more", "limit", ""):
        result.add_column(column, justify="right")
    verdict = {True: "kept", False: "MISSED", None: ""}
    for figure in figures:
        result.add_row(
            figure.name,
            f"{figure.cpu:,.2f}",
            f"{figure.device:,.2f}",
            f"{figure.ratio:.2f}x",
            f"{figure.excess:+,.2f}",
            limit_of(figure),
            verdict[figure.within],
        )
    return result


def report(figures: list[Figure]) -> dict[str, Any]:
    """Return the contents of the ``--json`` file."""
    return {
        "device": DEVICE,
        "device_name": torch.get_device_module(DEVICE).get_device_name(0),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "unit": "microseconds",
        "cases": [
            {**asdict(item), "ratio": item.ratio, "excess": item.excess, "within": item.within}
            for item in figures
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument("--quick", action="store_true", help="a few rounds only, to try it out")
    parser.add_argument("--only-fallback", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.only_fallback:
        print(json.dumps(asdict(measure(shortened(fallback_case(), arguments.quick)))))
        return
    figures = collect(arguments.quick)
    Console().print(table(figures))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report(figures), indent=2) + "\n")


if __name__ == "__main__":
    main()
