"""Every command line in docs/commands and in the update guide runs, page by page."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from commanding import succeed
from rendering import ROOT, Renderer, commit
from torchsmith import cli

BIN = Path(sys.executable).parent
PAGES = [*sorted((ROOT / "docs" / "commands").glob("*.md")), ROOT / "docs" / "updates.md"]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)

# The real commands, from this tree; building is left to tests/projects.
PRELUDE = f"""
set -e
torchsmith() {{ "{sys.executable}" -m torchsmith.cli "$@"; }}
copier() {{ "{BIN}/copier" "$@"; }}
fails() {{ if "$@"; then echo "should have failed: $*"; exit 9; else test $? = 1; fi; }}
"""
STUB = (
    f'#!/bin/sh\nif [ "$1" = -c ]; then exec "{sys.executable}" "$@"; fi\necho "== 7 passed =="\n'
)


@pytest.fixture
def workplace(render: Renderer, shared: Path, tmp_path: Path) -> Path:
    """Return a folder with the project torch-foo, whose template has a newer release."""
    ready = shared / "with-two-releases"
    with FileLock(shared / "with-two-releases.lock"):
        if not ready.exists():
            (shared / "released").mkdir()
            template, project = render.apart(shared / "released", features=["amp"])
            (template / "template" / "docs" / "news.md").write_text("# News\n")
            commit(template, "release", tag="v1.1.0")
            ready.with_suffix(".part").mkdir()
            project.rename(ready.with_suffix(".part") / "torch-foo")
            ready.with_suffix(".part").rename(ready)
    shutil.copytree(ready, tmp_path / "work")
    stub = tmp_path / "environment" / "bin" / "python"
    stub.parent.mkdir(parents=True)
    stub.write_text(STUB)
    stub.chmod(0o755)
    return tmp_path / "work"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_command_lines_run(page: Path, workplace: Path) -> None:
    lines = "".join(BLOCK.findall(page.read_text("utf-8"))).splitlines()
    assert lines
    script = [re.sub(r"(.*) # status 1$", r"fails \1", line) for line in lines]
    variables = {
        "PYTHONPATH": str(ROOT / "generator"),
        "VIRTUAL_ENV": str(workplace.parent / "environment"),
    }
    succeed("bash", "-c", PRELUDE + "\n".join(script), cwd=workplace, **variables)


def test_every_command_has_its_page() -> None:
    names = {
        info.name or info.callback.__name__
        for info in cli.app.registered_commands
        if info.callback is not None
    } | {str(group.name) for group in cli.app.registered_groups}
    assert names <= {page.stem for page in (ROOT / "docs" / "commands").glob("*.md")}
