"""Random programs against the CPU from the command line, in the folder ``tests``:

python -m fuzz --seed 0 --programs 250
"""

from __future__ import annotations

import argparse
import sys
import warnings

import torch
from backend import backend
from fuzz.search import search


def main() -> int:
    """Run the programs, and print the smallest one that fails."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Random programs against the CPU."
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--programs", type=int, default=250, help="of 200 statements each")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    backend.set_fallback_policy("silent")
    failing = search(range(options.seed, options.seed + options.programs))
    print(failing or "no program diverges from the CPU")
    return bool(failing)


if __name__ == "__main__":
    sys.exit(main())
