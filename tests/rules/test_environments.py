"""The environments of `make elsewhere`."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from commanding import run_python
from maintenance.environments import ENVIRONMENTS, of

SHOWN = """
import os, signal
names = [each.name for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN]
print(oct(os.umask(0)), "SIGINT" in names, os.environ.get("TZ"), os.listdir(os.environ["HOME"]))
"""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("background", "0o77 True None []"),
        ("terminal", "0o22 False Pacific/Kiritimati []"),
    ],
)
def test_a_command_runs_in_an_environment(
    name: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TZ", raising=False)
    ended = run_python("-m", "maintenance.environments", name, "--", "python", "-c", SHOWN)
    assert ended.passed().out == f"environment: {name}\n{shown}\n"


def test_the_exit_status_is_that_of_the_command() -> None:
    assert run_python("-m", "maintenance.environments", "avx2", "--", "false").status == 1
    assert run_python("-m", "maintenance.environments", "elsewhere", "--", "true").status == 2


def test_each_environment_is_scheduled_once_per_cycle() -> None:
    today = datetime.date(2026, 1, 1)
    days = [today + datetime.timedelta(number) for number in range(len(ENVIRONMENTS))]
    assert sorted(map(of, days)) == sorted(ENVIRONMENTS)
