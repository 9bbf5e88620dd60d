"""What kernels of low precision gain: ``python -m benchmarks.low_precision PYTHON``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Row, show

PROGRAM = Path(__file__).with_name("low_precision_costs.py")


def multiplying(python: Path) -> list[Row]:
    """Compare products of quantized weights with those of the weights' numbers, made each time."""
    command = [str(python), str(PROGRAM)]
    found: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return [
        Row(f"one row by {kind} weights of 2048 x 2048, against their numbers'", ratio, 1.0, "x")
        for kind, ratio in found.items()
    ]


def main() -> None:
    """Measure and print."""
    show(multiplying(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
