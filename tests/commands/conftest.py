from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commanding import Ended, Torchsmith
from rendering import Renderer, commit
from speed import sped_up
from torchsmith import cli


@pytest.fixture(autouse=True)
def fast_renders() -> Iterator[None]:
    """Render faster in this process; what users wait for is measured in benchmarks."""
    with sped_up():
        yield


@pytest.fixture
def torchsmith(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Torchsmith:
    """Run the command in this process, with nobody at the terminal."""

    def run(*arguments: str, cwd: Path | None = None, columns: int = 200) -> Ended:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["torchsmith", *arguments])
            patch.setenv("COLUMNS", str(columns))
            if cwd is not None:
                patch.chdir(cwd)
            capsys.readouterr()
            try:
                status = cli.main()
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            said = capsys.readouterr()
        return Ended(status, said.out, said.err)

    return run


@pytest.fixture
def project(render: Renderer, tmp_path: Path) -> Path:
    """A project with amp alone, under git."""
    path = tmp_path / "torch-foo"
    shutil.copytree(render(features=["amp"]), path)
    commit(path, "rendered")
    return path
