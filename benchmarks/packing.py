"""Measures packed weights on the example NPU: ``python -m benchmarks.packing PYTHON PROJECT``."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.building import configure
from benchmarks.costs import cost_of, printed
from benchmarks.figures import Row, show

PROGRAM = Path(__file__).with_name("packing_costs.py")


def packing(python: Path, project: Path) -> list[Row]:
    """Compare a weight that is packed once with one that is packed for each product."""
    build = project / "build" / "npu"
    cost_of(configure(project / "device", build, "-DFOO_DEVICE=tests/npu"))
    cost_of(["cmake", "--build", str(build)])
    ratio = printed(PROGRAM, python, LD_LIBRARY_PATH=str(build))
    name = "a vector by a weight of 2048 x 2048, packed once, against packed each time"
    return [Row(f"{name}, on the example NPU", ratio, 0.5, "x")]


def main() -> None:
    """Measure and print."""
    show(packing(Path(sys.argv[1]), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
