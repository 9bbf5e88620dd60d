"""Renders that are kept: as good as fresh ones, few, and never half of one."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import copier
import pytest

import invented
from commanding import start_python
from rendering import Renderer, commit, contents
from torchsmith import cache
from torchsmith.errors import InputError
from torchsmith.render import Job, render, renders

OLD, NEW = invented.TAGS[0], invented.TAGS[-1]
OWNERS = [f"owner-{number}" for number in range(cache.LIMIT + 2)]


@pytest.fixture
def template(six_releases: Path) -> Path:
    """The invented template."""
    return six_releases


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of each test's own, and a temporary folder, which is to stay empty."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "torchsmith"


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The answers of all renders that this process does."""
    answers: list[Any] = []
    run = copier.run_copy

    def watched(*arguments: Any, **options: Any) -> Any:
        answers.append(options["data"])
        return run(*arguments, **options)

    monkeypatch.setattr(copier, "run_copy", watched)
    return answers


def job(template: Path, owner: str = "acme", ref: str = OLD) -> Job:
    return Job({"owner": owner}, str(template), ref)


def files(*jobs: Job) -> list[dict[str, bytes]]:
    with renders(*jobs) as folders:
        return [contents(folder) for folder in folders]


def fresh(job: Job, folder: Path) -> dict[str, bytes]:
    render(folder, job)
    return contents(folder)


AT_ONCE = """
import sys
from torchsmith import cache
from torchsmith.render import Job, renders
cache.LIMIT = 1
template, ref, count = sys.argv[1:]
for owner in "ababab":
    with renders(Job({"owner": owner}, template, ref)) as (folder,):
        assert (folder / "about.txt").read_text().startswith(f"made by {owner}\\n")
        assert sum(path.is_file() for path in folder.rglob("*")) == int(count)
"""
HALF = """
import sys, time
import copier
from torchsmith.render import Job, renders
def stuck(template, folder, **_):
    folder.mkdir()
    (folder / "half").write_text("")
    print("half", flush=True)
    time.sleep(60)
copier.run_copy = stuck
template, ref = sys.argv[1:]
with renders(*(Job({"owner": owner}, template, ref) for owner in "ab")):
    pass
"""


def wait_for_group(leader: int) -> None:
    """Wait until every process that a process has started is gone."""
    for _ in range(600):
        try:
            os.killpg(leader, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process is left")


def test_what_is_kept_is_what_is_rendered(
    template: Path, tmp_path: Path, rendered: list[Any]
) -> None:
    expected = fresh(job(template), tmp_path / "fresh")
    assert b"made by acme\n" in expected["about.txt"]
    rendered.clear()
    assert [files(job(template)) for _ in range(2)] == [[expected]] * 2
    assert len(rendered) == 1


def test_copier_by_itself_renders_the_same(
    template: Path, tmp_path: Path, render: Renderer
) -> None:
    [ours] = files(Job({"preset": "minimal"}, str(render.template), "HEAD"))
    assert ours == contents(render(preset="minimal"))
    [ours] = files(job(template))
    copier.run_copy(
        str(template), tmp_path / "out", {"owner": "acme"}, vcs_ref=OLD, defaults=True, quiet=True
    )
    assert ours == contents(tmp_path / "out")


def test_other_answers_versions_and_last_answers_are_other_renders(
    template: Path, tmp_path: Path
) -> None:
    last = tmp_path / "last.yml"
    jobs = [
        job(template),
        job(template, "another"),
        job(template, ref=invented.TAGS[1]),
        Job({}, str(template), OLD, last),
    ]
    expected = [fresh(each, tmp_path / str(number)) for number, each in enumerate(jobs[:3])]
    for owner in ("old", "older"):
        last.write_text(f"owner: {owner}\n")
        found = files(*jobs)
        assert found[:3] == expected
        assert found[3]["about.txt"].startswith(f"made by {owner}\n".encode())


def test_a_mistake_in_another_process_is_the_same_sentence(template: Path, tmp_path: Path) -> None:
    wrong = Job({"preset": "fulll"}, str(template), OLD)
    with pytest.raises(InputError) as expected:
        render(tmp_path / "out", wrong)
    with pytest.raises(InputError) as said, renders(wrong, job(template)):
        pass
    assert str(said.value) == str(expected.value)


def test_a_defect_in_another_process_is_heard_of(
    template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises((RuntimeError, BrokenPipeError)), renders(job(template), job(template, "b")):
        pass


def test_few_are_kept_and_the_last_used_of_them(
    template: Path, home: Path, rendered: list[Any]
) -> None:
    for owner in OWNERS:
        files(job(template, owner))
        files(job(template, OWNERS[0]))
    assert len(list((home / "renders").iterdir())) == cache.LIMIT
    rendered.clear()
    files(job(template, OWNERS[0]))
    assert rendered == []
    files(job(template, OWNERS[1]))
    assert rendered == [{"owner": OWNERS[1]}]


def test_what_is_used_stays(template: Path) -> None:
    with renders(job(template)) as (folder,):
        before = contents(folder)
        for owner in OWNERS:
            files(job(template, owner))
        assert contents(folder) == before


def test_a_branch_with_changes_is_rendered_each_time(tmp_path: Path) -> None:
    template = tmp_path / "template"
    invented.make(template)
    for number, text in enumerate(("one", "two")):
        (template / "template" / "readme.txt").write_text(text)
        [found] = files(job(template, ref="HEAD"))
        assert found["readme.txt"] == text.encode(), number
    commit(template, "changed")
    for text in ("three", "four"):  # as long as the one before
        (template / "template" / "readme.txt").write_text(text)
        commit(template, text)
        [found] = files(job(template, ref="HEAD"))
        assert found["readme.txt"] == text.encode()


def test_where_nothing_can_be_written_all_is_rendered(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rendered: list[Any]
) -> None:
    expected = files(job(template))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    rendered.clear()
    assert [files(job(template)) for _ in range(2)] == [expected] * 2
    assert len(rendered) == 2
    assert list((tmp_path / "temporary").iterdir()) == []


def test_several_commands_at_once(template: Path) -> None:
    files_of_one = len(files(job(template))[0])
    processes = [
        start_python("-c", AT_ONCE, str(template), OLD, str(files_of_one)) for _ in range(4)
    ]
    assert [process.communicate() for process in processes] == [("", "")] * 4


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_what_is_cut_off_is_neither_used_nor_left(
    template: Path, tmp_path: Path, home: Path, by: signal.Signals
) -> None:
    for _ in range(2):
        process = start_python("-c", HALF, str(template), OLD)
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        process.send_signal(by)
        process.communicate()
        wait_for_group(process.pid)
    assert len(list((home / "scratch").iterdir())) == (by == signal.SIGKILL)
    assert not (home / "renders").exists()
    files(job(template))
    assert list((home / "scratch").iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == []
