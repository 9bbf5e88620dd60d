"""`python -m maintenance.recording`: records the first commands of a user, as docs/quickstart.svg.

The commands run in a terminal of their own and in a new environment; what they print is drawn as
an animation, in which lines appear as they were printed. Long waits are shortened.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from maintenance.installing import BIN, link_packages, make_environment
from torchsmith.template import TEMPLATE

PICTURE = TEMPLATE / "docs" / "quickstart.svg"
COMMANDS = (
    "torchsmith new torch-foo --defaults",
    "python -m pip install --quiet --no-build-isolation ./torch-foo",
    "python torch-foo/examples/quickstart.py",
)
COLUMNS, ROWS = 92, 26
# Seconds: between two lines at least and at most, before and after a command, and at the end.
SHORTEST_WAIT, LONGEST_WAIT, READING, END = 0.1, 1.0, 1.2, 8.0
# From so many seconds on, a command is said to have taken minutes; how many depends on the machine.
LONG = 60.0

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Line:
    """What appeared in the terminal, when, in seconds, and whether it was typed."""

    text: str
    at: float
    typed: bool = False


def output(command: str, folder: Path, variables: dict[str, str]) -> Iterator[Line]:
    """Run a command in a terminal and return its lines, timed from its start.

    Raises:
        SystemExit: it failed.
    """
    ours, its = pty.openpty()
    start = time.monotonic()
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], cwd=folder, env=variables, stdin=its, stdout=its, stderr=its
    )
    os.close(its)
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        pending = b""
        while data := _read_terminal(terminal.fileno()):
            *complete, pending = (pending + data).split(b"\n")
            for line in complete:
                yield from _wrapped(line.decode(), time.monotonic() - start)
    if process.wait():
        raise SystemExit(f"'{command}' failed with status {process.returncode}")
    if (took := time.monotonic() - start) > LONG:
        yield Line("(minutes later)", took)


def _read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # This is how Linux says that the other side has ended.
        return b""


def _wrapped(text: str, at: float) -> list[Line]:
    """Return a line as a terminal of so many columns shows it."""
    shown = _ESCAPES.sub("", text).rstrip("\r").rpartition("\r")[2].rstrip()
    starts = range(0, max(len(shown), 1), COLUMNS)
    return [Line(shown[start : start + COLUMNS], at) for start in starts]


def record(folder: Path) -> list[Line]:
    """Run the commands one after the other; times are those of the animation."""
    python = make_environment(folder / "environment", link_packages(folder / "packages"))
    variables = {
        **os.environ,
        "PATH": f"{python.parent}:{BIN}:{os.environ['PATH']}",
        "CCACHE_DISABLE": "1",
        "COLUMNS": str(COLUMNS),
        "TERM": "dumb",
    }
    variables.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)
    lines: list[Line] = []
    now = 0.0
    for command in COMMANDS:
        lines.append(Line(f"$ {command}", now, typed=True))
        now += READING
        before = 0.0
        for line in output(command, folder, variables):
            now += min(max(line.at - before, SHORTEST_WAIT), LONGEST_WAIT)
            before = line.at
            lines.append(Line(line.text, now))
        now += READING
    return lines


def draw(lines: list[Line]) -> str:
    """Return the animation: a line appears at its time, and what is above the last rows scrolls."""
    length = lines[-1].at + END
    height, left, top = 20, 16, 30
    style, texts = [], []
    scrolling: dict[str, int] = {}
    for row, line in enumerate(lines):
        at = f"{100 * line.at / length:.2f}%"
        style.append(f"@keyframes l{row} {{ 0% {{ opacity: 0 }} {at} {{ opacity: 1 }} }}")
        kind = ' class="typed"' if line.typed else ""
        texts.append(
            f'<text x="{left}" y="{top + row * height}"{kind} style="animation-name: l{row}">'
            f"{escape(line.text, quote=False)}</text>"
        )
        scrolling[at] = max(row + 1 - ROWS, 0)
    steps = " ".join(
        f"{at} {{ transform: translateY({-rows * height}px) }}" for at, rows in scrolling.items()
    )
    width, tall = COLUMNS * 8.5 + 2 * left, ROWS * height + 2 * left
    last = max(len(lines) - ROWS, 0) * height
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {tall}" role="img">
<title>A terminal: {escape("; ".join(COMMANDS), quote=False)}</title>
<style>
rect {{ fill: #14171b }}
text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #e6e9ee;
  white-space: pre; animation: {length:.1f}s step-end infinite }}
.typed {{ fill: #ffb38a; font-weight: bold }}
g {{ transform: translateY({-last}px); animation: scroll {length:.1f}s step-end infinite }}
@keyframes scroll {{ {steps} }}
{chr(10).join(style)}
@media (prefers-reduced-motion: reduce) {{ text, g {{ animation: none }} }}
</style>
<rect width="100%" height="100%" rx="8"/>
<g>
{chr(10).join(texts)}
</g>
</svg>
"""


def main() -> int:
    """Record and draw."""
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_text(draw(record(Path(folder))), "utf-8")
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
