from __future__ import annotations

import sys
from pathlib import Path

import pytest
from filelock import FileLock

import invented
import tiny
from commanding import Ended, Torchsmith
from rendering import commit
from torchsmith import cli
from torchsmith.render import Job
from torchsmith.render import render as render_for_cli


@pytest.fixture
def torchsmith(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Torchsmith:
    """Return a function that runs the command in this process, without a terminal."""

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
def template(tmp_path: Path) -> Path:
    """Return a template with two releases, between which files change, move, go and come."""
    folder = tmp_path / "template"
    folder.mkdir()
    tiny.release(folder, "v1.0.0", tiny.FIRST, {})
    tiny.release(folder, "v2.0.0", tiny.SECOND, tiny.MOVED)
    return folder


@pytest.fixture
def small(template: Path, tmp_path: Path) -> Path:
    """Return a project of the first release."""
    folder = tmp_path / "project"
    render_for_cli(folder, Job({}, str(template), "v1.0.0"))
    commit(folder, "rendered")
    return folder


@pytest.fixture(scope="session")
def six_releases(shared: Path) -> Path:
    """Return the invented template, which tests must not change."""
    folder = shared / "invented"
    with FileLock(shared / "invented.lock"):
        if not folder.exists():
            invented.make(folder.with_suffix(".part"))
            folder.with_suffix(".part").rename(folder)
    return folder
