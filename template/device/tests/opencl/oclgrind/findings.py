"""A plugin for pytest: a test fails with the errors that Oclgrind has found in its kernels."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

MOST = 4000
"""The maximum number of characters that are shown for one test."""


class Findings:
    """The file that Oclgrind writes, and how much of it has been read."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0

    def take(self) -> str:
        """The text that was written since the last call."""
        if not self._log.exists():
            return ""
        with self._log.open(errors="replace") as log:
            log.seek(self._read)
            text = log.read()
            self._read = log.tell()
        return text.strip()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds an option for a sample of the tests."""
    parser.addoption("--one-in", type=int, default=1, metavar="N", help="run each N-th test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects tests that are not in the sample."""
    step = config.getoption("--one-in")
    config.hook.pytest_deselected(items=[item for at, item in enumerate(items) if at % step])
    items[:] = items[::step]


def pytest_configure(config: pytest.Config) -> None:
    """Gives each worker its own file, before Oclgrind opens it."""
    log = Path(os.environ["OCLGRIND_LOG"]).with_suffix(f".{os.getpid()}")
    os.environ["OCLGRIND_LOG"] = str(log)
    config.stash[_FINDINGS] = Findings(log)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fails a passed test that has errors, and adds the errors to another failure."""
    findings = pyfuncitem.config.stash[_FINDINGS]
    try:
        result = yield
    except Exception:
        pyfuncitem.add_report_section("call", "Oclgrind", findings.take()[:MOST])
        raise
    found = findings.take()
    if found:
        pytest.fail(found[:MOST], pytrace=False)
    return result


_FINDINGS = pytest.StashKey[Findings]()
