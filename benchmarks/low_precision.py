"""Measures low precision and paged caches: ``python -m benchmarks.low_precision PYTHON``."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.costs import printed
from benchmarks.figures import Row, show

PROGRAM = Path(__file__).with_name("low_precision_costs.py")


def multiplying(python: Path) -> list[Row]:
    """Compare quantized weights with dequantize and matmul, and paged caches with dense ones."""
    found = printed(PROGRAM, python)
    rows = [
        Row(
            f"one row by {kind} weights of 2048 x 2048, against dequantize and matmul",
            ratio,
            1.0,
            "x",
        )
        for kind, ratio in found["weights"].items()
    ]
    decoding = "decoding 8 sequences from a paged cache, against a dense one in the same order"
    return [*rows, Row(decoding, found["decoding"], 1.2, "x")]


def main() -> None:
    """Measure and print."""
    show(multiplying(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
