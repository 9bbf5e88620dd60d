"""What ``torch.compile`` gains: ``python -m benchmarks.compiling PYTHON PROJECT``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Row, show

PROGRAM = Path(__file__).with_name("compiled.py")


def _ratios(python: Path, project: Path, **environment: str) -> dict[str, float]:
    command = [str(python), str(PROGRAM), str(project / "examples")]
    result = subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found


def compiling(python: Path, project: Path) -> list[Row]:
    """Compare compiled models with eager ones, by operators, by replays and by the host's code."""
    found = _ratios(python, project)
    host = _ratios(python, project, FOO_SIMULATOR_HOST_ADDRESS="1")
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
            title = f"{count} letters by examples/gpt.py, {how}, against eager"
            rows.append(Row(title, found[f"gpt {count} {mode}"], limit, "x"))
    rows.append(
        Row("20 elementwise operators, by code of the host, against eager", host["chain"], 0.7, "x")
    )
    return rows


def main() -> None:
    """Measure and print."""
    show(compiling(Path(sys.argv[1]), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
