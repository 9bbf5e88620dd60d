"""Measures the host time of features: ``python -m benchmarks.features PYTHON OTHER_PYTHON``.

The first is the Python of an environment with `full`, the second of one with `standard`.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.costs import printed
from benchmarks.figures import Row, show

PROGRAM = Path(__file__).with_name("feature_costs.py")
ROUNDS = 7


def _cost(python: Path, name: str) -> Any:
    return printed(PROGRAM, python, name)


def launches(full: Path, standard: Path) -> Row:
    """Compare a launch with all features, none of them in use, with one of `standard`."""
    times: dict[Path, list[float]] = {full: [], standard: []}
    for _ in range(ROUNDS):
        for python, found in times.items():
            found.append(_cost(python, "launching"))
    ratio = statistics.median(times[full]) / statistics.median(times[standard])
    return Row("add, 1 element, `full` unused, against `standard`", ratio, 1.03, "x")


def costs(full: Path, standard: Path) -> list[Row]:
    """Measure the cost of features in use, and of unused ones."""
    launch, sent = _cost(full, "profiling"), _cost(full, "sending")
    return [
        launches(full, standard),
        Row("a launch in a profile of the device", launch["device"] - launch["off"], 2, "µs"),
        Row(
            "a launch in a profile of both, above one of the host",
            launch["both"] - launch["host"],
            2,
            "µs",
        ),
        Row("replay of a graph, per operator", _cost(full, "replaying"), 0.5, "µs"),
        Row(
            "64 MiB to another process, against a copy through the host",
            sent["itself"] / sent["copied"],
            0.5,
            "x",
        ),
    ]


def main() -> None:
    """Measure and print."""
    show(costs(Path(sys.argv[1]), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
