"""`python -m maintenance.recording`: draws the first commands of a user as docs/quickstart.svg.

The commands run in a new environment; the picture shows what they print.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from maintenance.installing import BIN, link_packages, make_environment
from torchsmith.template import TEMPLATE

PICTURE = TEMPLATE / "docs" / "quickstart.svg"
COMMANDS = (
    "torchsmith new torch-foo --defaults",
    "python -m pip install --quiet --no-build-isolation ./torch-foo",
    "python torch-foo/examples/quickstart.py",
)
COLUMNS = 92


def record(folder: Path) -> list[str]:
    """Run the commands one after the other, and return them with the lines that they print."""
    python = make_environment(folder / "environment", link_packages(folder / "packages"))
    variables = {
        **os.environ,
        "PATH": f"{python.parent}:{BIN}:{os.environ['PATH']}",
        "COLUMNS": str(COLUMNS),
    }
    variables.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)
    lines = []
    for command in COMMANDS:
        done = subprocess.run(
            command, shell=True, cwd=folder, env=variables, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"'{command}' failed with status {done.returncode}:\n{done.stdout}")
        lines += [f"$ {command}", *done.stdout.splitlines()]
    return lines


def draw(lines: list[str]) -> str:
    """Return the picture of a terminal."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    for line in lines:
        style = "bold yellow" if line.startswith("$ ") else None
        console.print(line, style=style, markup=False, emoji=False)
    return console.export_svg(title="The first commands", unique_id="quickstart")


def main() -> int:
    """Record and draw."""
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_text(draw(record(Path(folder))), "utf-8")
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
