"""Counts the operators that run on the device: ``python -m benchmarks.evidence PYTHON PROJECT``.

The project is a render of `full` that is installed for this Python. Its conformance tests check the
list of entries that run on the CPU.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.costs import printed
from benchmarks.figures import Row, show

PROGRAM = Path(__file__).with_name("evidence_counts.py")
NATIVE = "overloads of PyTorch's operators with a kernel of the backend"
COMPUTED = "overloads that PyTorch's CPU backend computes"
ON_DEVICE = "entries of PyTorch's OpInfo table that run without the CPU"
ENTRIES = "entries of PyTorch's OpInfo table"


def counting(python: Path, project: Path) -> list[Row]:
    """Count the operators with a kernel, and the entries of OpInfo that run on the device alone."""
    found = printed(PROGRAM, python, folder=project)
    return [
        Row(NATIVE, found["native"], None, ""),
        Row(COMPUTED, found["computed"], None, ""),
        Row(ON_DEVICE, found["on device"], None, ""),
        Row(ENTRIES, found["entries"], None, ""),
    ]


def main() -> None:
    """Count and print."""
    show(counting(Path(sys.argv[1]), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
