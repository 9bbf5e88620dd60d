"""Measures ``torch.compile``: ``python -m benchmarks.compiling PYTHON PROJECT``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Row, show

PROGRAM = Path(__file__).with_name("compiled.py")


KERNELS = {
    "chain": ("20 elementwise operators on 1M numbers", 0.3),
    "block": ("layer norm, GELU and a residual, 2048 x 768", 0.6),
    "rows": ("softmax of 256 x 4096", 0.8),
    "gpt step": ("a step of examples/gpt.py", 0.95),
}


def compiling(python: Path, project: Path) -> list[Row]:
    """Compare compiled models with eager ones, with and without replays."""
    command = [str(python), str(PROGRAM), str(project / "examples")]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    rows = []
    for mode, how, limit in (("default", "compiled", 1.0), ("reduce-overhead", "replayed", 0.8)):
        rows.append(
            Row(
                f"forward and backward of the MLP, {how}, against eager",
                found[f"training {mode}"],
                limit,
                "x",
            )
        )
        for count in (1, 4):
            title = f"{count} token{'s' * (count > 1)} with examples/gpt.py, {how}, against eager"
            rows.append(Row(title, found[f"gpt {count} {mode}"], limit, "x"))
    for name, (title, limit) in KERNELS.items():
        rows.append(Row(f"{title}, compiled, against eager", found[name], limit, "x"))
    return rows


def main() -> None:
    """Measure and print."""
    show(compiling(Path(sys.argv[1]), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
