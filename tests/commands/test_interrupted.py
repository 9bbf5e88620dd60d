"""Interrupted commands leave the project unchanged, or complete."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import invented
from commanding import Torchsmith, run_python, start_python
from rendering import Renderer, answers_in, commit, contents, git
from torchsmith.files import swap
from torchsmith.render import Job, render

# The tests write the template.
MOMENTS = 20
OLD, NEW = invented.TAGS[0], invented.TAGS[-1]
# Prints a line when Python has started: the command cannot handle earlier signals. The line is
# printed in main(), so that the next signal reaches the command.
START = """
import sys
from torchsmith.__main__ import main

class Beginning:
    def find_spec(self, name, *rest):
        if name == "torchsmith.cli":
            print("started", flush=True)

sys.meta_path.insert(0, Beginning())
sys.exit(main())
"""
# Sends itself a signal at one of its file operations, which it counts in a file.
AT_A_STEP = """
import os, pathlib, sys
counted, moment, number, *sys.argv[1:] = sys.argv[1:]
steps = 0

def step(function):
    def do(*arguments, **named):
        global steps
        steps += 1
        if steps == int(moment):
            os.kill(os.getpid(), int(number))
        return function(*arguments, **named)
    return do

from torchsmith.__main__ import main
for name in ("mkdir", "rename", "replace", "unlink"):
    setattr(os, name, step(getattr(os, name)))
status = main()
pathlib.Path(counted).write_text(str(steps))
sys.exit(status)
"""
# Ctrl-C in a callback, whose exceptions Python prints and discards.
WITHIN_A_CALLBACK = """
import signal, sys, time, weakref
from torchsmith import __main__, cli

class Watched: pass

def run():
    watched = Watched()
    reference = weakref.ref(watched, lambda _: signal.raise_signal(signal.SIGINT))
    del watched
    time.sleep(20)
    return 0

cli.main = run
sys.exit(__main__.main())
"""


@pytest.fixture
def project(six_releases: Path, tmp_path: Path) -> Path:
    """Return a project of the first release."""
    folder = tmp_path / "project"
    render(folder, Job({}, str(six_releases), OLD))
    commit(folder, "rendered")
    return folder


@pytest.fixture
def torch_foo(render: Renderer, tmp_path: Path) -> Path:
    """Return a project with features, in a folder with nothing else."""
    return render.project(tmp_path / "around" / "torch-foo", features=["amp"])


def started(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start a command, and wait until Python has started."""
    process = start_python("-c", START, *arguments, cwd=folder)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def run_completely(arguments: list[str], folder: Path) -> float:
    """Run a command and return how long it took."""
    process, start = started(arguments, folder), time.monotonic()
    said = process.communicate()
    assert process.returncode == 0, said
    return time.monotonic() - start


def run_until_signal(arguments: list[str], folder: Path, after: float, by: signal.Signals) -> int:
    """Start a command, send it a signal, and return its status."""
    process = started(arguments, folder)
    time.sleep(after)
    if process.poll() is None:
        os.killpg(process.pid, by)
    said = process.communicate()
    assert "Traceback" not in said[1]
    if process.returncode == 130:
        assert said[1].endswith("torchsmith: interrupted\n")
    else:
        assert process.returncode in (0, -by), said
    return process.returncode


def test_an_interrupt_within_a_callback_is_not_lost(tmp_path: Path) -> None:
    process = start_python("-c", WITHIN_A_CALLBACK, cwd=tmp_path)
    assert process.communicate() == ("", "torchsmith: interrupted\n")
    assert process.returncode == 130


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_an_interrupted_update_is_complete_or_undone(
    project: Path, tmp_path: Path, by: signal.Signals, torchsmith: Torchsmith
) -> None:
    update = ["update", "--yes", "--to", NEW, "--json"]
    shutil.copytree(project, tmp_path / "planned")
    took = run_completely(update, tmp_path / "planned")
    before, planned = contents(project), contents(tmp_path / "planned")
    statuses = set()
    for moment in range(MOMENTS):
        statuses.add(run_until_signal(update, project, took * moment / MOMENTS, by))
        if by == signal.SIGKILL:
            torchsmith("features", cwd=project)  # the next command cleans up
        assert contents(project) in (before, planned)
        if contents(project) == before:
            assert git(project, "status", "--porcelain") == ""
        assert not (project / ".git" / "torchsmith" / "journal").exists()
        git(project, "reset", "--quiet", "--hard")
        git(project, "clean", "--quiet", "-d", "--force")
    assert {130, -by} & statuses
    run_completely(update, project)
    assert contents(project) == planned


def test_the_next_command_undoes_a_killed_update(
    project: Path, six_releases: Path, tmp_path: Path, torchsmith: Torchsmith
) -> None:
    """Without the undo, the update would read the new version from the answers file."""
    newer, write = tmp_path / "newer", [".copier-answers.yml", "readme.txt"]
    render(newer, Job({}, str(six_releases), NEW))
    if (child := os.fork()) == 0:
        swap(project, newer, write=write, last=lambda: os.kill(os.getpid(), signal.SIGKILL))
    os.waitpid(child, 0)
    assert answers_in(project)["_commit"] == NEW
    done = torchsmith("update", "--yes", "--to", NEW, cwd=project).passed()
    assert done.err.startswith(
        f"torchsmith: a command was interrupted in '{project}', and is undone\n"
    )
    assert contents(project) == contents(newer)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_an_interrupted_new_writes_all_files_or_none(
    six_releases: Path, tmp_path: Path, by: signal.Signals
) -> None:
    def command(name: str) -> list[str]:
        return ["new", name, "--template", str(six_releases), "--to", NEW, "--defaults"]

    took = run_completely(command("planned"), tmp_path)
    planned = contents(tmp_path / "planned")
    statuses = set()
    for moment in range(MOMENTS):
        statuses.add(run_until_signal(command("out/foo"), tmp_path, took * moment / MOMENTS, by))
        if (tmp_path / "out" / "foo").exists():
            assert contents(tmp_path / "out" / "foo") == planned
        elif by == signal.SIGINT:
            assert [path.name for path in tmp_path.iterdir()] == ["planned"]
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert {130, -by} & statuses
    run_completely(command("out/foo"), tmp_path)
    assert contents(tmp_path / "out" / "foo") == planned


@pytest.mark.parametrize(
    "command",
    [
        "new ../torch-bar --defaults -d preset=minimal --template TEMPLATE",
        "add rng --yes",
        "remove amp --yes",
        "update --to current -d backend_name=bar --yes",
        "device new acme",
    ],
)
def test_a_terminated_command_is_complete_or_leaves_no_changes(
    command: str, torch_foo: Path, render: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    around, cache = torch_foo.parent, torch_foo.parent / "cache"
    (cache / "torchsmith" / "scratch").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    words = command.replace("TEMPLATE", str(render.template)).split()

    def end(at: int, by: signal.Signals) -> int:
        steps = around / "steps"
        done = run_python("-c", AT_A_STEP, str(steps), str(at), str(int(by)), *words, cwd=torch_foo)
        assert (done.status, "Traceback" in done.err) == (-by if at else 0, False), done
        assert [*cache.rglob("torchsmith-*")] == []
        count = int(steps.read_text()) if steps.exists() else 0
        steps.unlink(missing_ok=True)
        return count

    def tidied() -> dict[str, bytes]:
        """Return the files, and undo the changes."""
        found = contents(around)
        shutil.rmtree(around / "torch-bar", ignore_errors=True)
        git(torch_foo, "reset", "--quiet", "--hard")
        git(torch_foo, "clean", "--quiet", "-d", "--force")
        return {path: text for path, text in found.items() if "/.git/" not in path}

    before = tidied()
    steps = end(0, signal.SIGTERM)
    planned = tidied()
    for at, by in (
        (1, signal.SIGHUP),
        (steps // 2, signal.SIGTERM),
        (steps * 9 // 10, signal.SIGHUP),
    ):
        end(at, by)
        assert tidied() in (before, planned)


def test_two_simultaneous_new_commands_write_one_project(
    six_releases: Path, tmp_path: Path
) -> None:
    command = ["new", "out", "--template", str(six_releases), "--to", NEW, "--defaults"]
    processes = [started(command, tmp_path) for _ in range(2)]
    said = [process.communicate()[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 2]
    lost = next(text for text, each in zip(said, processes, strict=True) if each.returncode)
    assert lost == "torchsmith: 'out' is not empty: name a new folder\n"
    fresh = tmp_path / "fresh"
    render(fresh, Job({}, str(six_releases), NEW))
    assert contents(tmp_path / "out") == contents(fresh)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fresh", "out"]


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a file")


def test_new_writes_nothing_if_the_disk_is_full(
    six_releases: Path, tmp_path: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        patch.setattr(Path, "replace", full)
        done = torchsmith(
            "new", "out/foo", "--template", str(six_releases), "--defaults", cwd=tmp_path
        )
    assert done.refused().startswith("the system refuses 'a file' (")
    assert list(tmp_path.iterdir()) == []
