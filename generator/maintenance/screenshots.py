"""`python -m maintenance.screenshots`: draws screens of the command and of the page for the docs.

The command runs in the tests' terminal, the page in their browser.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

from choosing import chromium, opened
from maintenance.site import build
from rendering import commit, snapshot
from terminal import Terminal
from torchsmith.render import Job, render
from torchsmith.template import REPOSITORY, TEMPLATE

FOLDER = TEMPLATE / "docs" / "screens"
COLUMNS = 92
DOWN, ALL, ENTER, INTERRUPT = "\x1b[B", "\x15", "\r", "\x03"
PAGER = "sed -n '/README.md b/,$p' | head -n 13"
"""Prints from the first file whose text is the same on every machine."""


def new(folder: Path) -> Terminal:
    """Answer the questions of `torchsmith new` up to the last one."""
    terminal = Terminal("new", cwd=folder, columns=COLUMNS)
    terminal.answer("Device name", f"{ALL}acme{ENTER}")
    terminal.answer("Folder", ENTER)
    terminal.answer("Purpose", ENTER)
    terminal.answer("More options", ENTER)
    terminal.wait_for("Write it?")
    return terminal


def features(folder: Path) -> Terminal:
    """List the features."""
    terminal = Terminal("features", cwd=folder, columns=COLUMNS, lines=80)
    terminal.wait_for("full")
    return terminal


def preview(folder: Path) -> Terminal:
    """Preview a feature in a new project."""
    project = folder / "torch-acme"
    template = snapshot(folder / "template")
    render(project, Job({"backend_name": "acme", "preset": "minimal"}, str(template)))
    commit(project, "Render torch-acme")
    terminal = Terminal(
        *("preview", "--add", "amp"),
        cwd=project,
        columns=COLUMNS,
        lines=80,
        variables={"PAGER": PAGER},
    )
    terminal.wait_for("diff --git")
    return terminal


SCREENS: dict[str, tuple[str, Callable[[Path], Terminal]]] = {
    "new": ("torchsmith new", new),
    "features": ("torchsmith features", features),
    "preview": ("torchsmith preview --add amp", preview),
}


def rows(screen: pyte.Screen) -> list[Text]:
    """Return the lines of a screen with their colours, without the empty ones at the end."""
    found = []
    for number in range(screen.lines):
        cells = [screen.buffer[number][column] for column in range(screen.columns)]
        text = Text()
        for (front, bold), some in groupby(cells, lambda cell: (cell.fg, cell.bold)):
            text.append("".join(cell.data for cell in some), Style(color=colour(front), bold=bold))
        text.rstrip()
        found.append(text)
    while found and not found[-1].plain:
        found.pop()
    return found


def colour(name: str) -> str | None:
    """Return rich's name for a colour of the terminal."""
    if name == "default":
        return None
    if len(name) == 6 and set(name) <= set("0123456789abcdef"):
        return f"#{name}"
    name = name.replace("brown", "yellow")
    return name.replace("bright", "bright_") if name.startswith("bright") else name


def draw(name: str, command: str, lines: list[Text]) -> str:
    """Return the picture of a terminal."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    console.print(f"$ {command}", style="bold yellow", markup=False)
    for line in lines:
        console.print(line)
    return console.export_svg(title=command, unique_id=name)


def draw_page(folder: Path) -> bytes:
    """Return a picture of the page that renders projects in a browser."""
    template = snapshot(folder / "template")
    with chromium() as browser:
        page = opened(browser, build.data(template, REPOSITORY), folder)
        return page.get_screenshot_as_png()


def main() -> int:
    """Draw all screens."""
    FOLDER.mkdir(exist_ok=True)
    for name, (command, show) in SCREENS.items():
        with tempfile.TemporaryDirectory() as folder:
            terminal = show(Path(folder))
            lines = rows(terminal.screen)
            terminal.type(INTERRUPT)
            terminal.end()
        picture = FOLDER / f"{name}.svg"
        picture.write_text(draw(name, command, lines), "utf-8")
        print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")
    with tempfile.TemporaryDirectory() as folder:
        (FOLDER / "page.png").write_bytes(draw_page(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
