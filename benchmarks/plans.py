"""Measures the host time of a launch that finds its plan: ``python -m benchmarks.plans PYTHON``."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.costs import printed
from benchmarks.figures import Row, show

PROGRAM = Path(__file__).with_name("plan_costs.py")


def preparing(python: Path) -> list[Row]:
    """Compare launches with plans to the same launches without plans."""
    return [
        Row(f"{name} that finds its plan: host time on top", excess, 0.2, "µs")
        for name, excess in printed(PROGRAM, python).items()
    ]


def main() -> None:
    """Measure and print."""
    show(preparing(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
