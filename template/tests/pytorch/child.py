"""Runs one test file of PyTorch in its own process: ``python tests/pytorch/child.py JOB``.

JOB is a JSON file. The process writes each event as a line of another file, so that the events are
known even if the process crashes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

HERE = Path(__file__).resolve().parent
# At the end, because PyTorch's tests import their neighbours by short names.
sys.path[:] = [path for path in sys.path if Path(path).resolve() not in (HERE, Path.cwd())]
sys.path.append(str(HERE.parent))

import pytest  # noqa: E402
import torch  # noqa: E402
from conformance.run import lacking  # noqa: E402
from pytorch import device  # noqa: E402
from pytorch.expectations import Case, Expectations, read, release_of  # noqa: E402
from support import forget_failures, supported_dtypes  # noqa: E402

SHOWN = 300
"""Characters of a failure's reason that are kept."""


class Recorder:
    """Deselects tests that are not of a device, and records the outcome of the others."""

    def __init__(
        self, file: TextIO, known: Expectations, done: set[str], part: tuple[int, int]
    ) -> None:
        self.file = file
        self.known = known
        self.done = done
        self.part = part
        self.lacking = ""

    def write(self, **event: Any) -> None:
        """Write one event."""
        self.file.write(json.dumps(event) + "\n")
        self.file.flush()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select the device's tests that have not run yet; skip declared and impossible ones."""
        number, parts = self.part
        mine = [item for item in items if hasattr(getattr(item, "obj", None), device.MARK)]
        kept = []
        for item in mine[number::parts]:
            test: Case = getattr(item.obj, device.MARK)  # type: ignore[attr-defined]
            self.write(
                event="test",
                id=test.id,
                template=test.template,
                operator=test.operator,
                dtypes=test.dtypes,
            )
            if test.id in self.done:
                continue
            if reason := self.why_not(test):
                item.add_marker(pytest.mark.skip(reason=reason))
            kept.append(item)
        items[:] = kept
        self.write(event="collected")

    def why_not(self, test: Case) -> str:
        """Return why a test does not run, or an empty string."""
        for entry in self.known.of(test, "skip"):
            return f"declared: {entry.reason}"
        usual = {str(dtype).removeprefix("torch.") for dtype in supported_dtypes()}
        without = [name for name in test.dtypes if name not in usual]
        return f"generated without {', '.join(without)}" if without else ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record that the file cannot be imported."""
        if report.failed:
            lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
            self.write(event="broken", reason=lines[-1].removeprefix("E").strip()[:SHOWN])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Record which test runs, and acknowledge its failures after it."""
        test: Case = item.obj.__dict__[device.MARK]  # type: ignore[attr-defined]
        self.write(event="start", id=test.id)
        self.lacking = ""
        self.outcome, self.reason, started = "pass", "", time.monotonic()
        try:
            return (yield)
        finally:
            forget_failures()
            seconds = round(time.monotonic() - started, 3)
            self.write(
                event="end",
                id=test.id,
                outcome=self.outcome,
                reason=self.reason,
                seconds=seconds,
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Any:
        """Check whether a test failed because of an unsupported dtype."""
        report = yield
        error = call.excinfo.value if call.excinfo else None
        while error is not None and not self.lacking:
            self.lacking = lacking(error) if isinstance(error, Exception) else ""
            error = error.__cause__
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the worst outcome of a test's three phases."""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            text = crash.message if crash else str(report.longrepr).strip().splitlines()[-1]
            if self.lacking:
                self.outcome, self.reason = "skip", f"generated without {self.lacking}"
            else:
                self.outcome, self.reason = "fail", text.strip()[:SHOWN]
        elif report.skipped and self.outcome == "pass":
            if hasattr(report, "wasxfail"):
                self.outcome, self.reason = "expected", "PyTorch expects it to fail"
            else:
                where = report.longrepr
                text = str(where[2]) if isinstance(where, tuple) else str(where)
                self.outcome, self.reason = "skip", text.removeprefix("Skipped: ")[:SHOWN]


def main() -> int:
    """Run the tests of one file, and return pytest's status."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    known = Expectations(read(map(Path, job["known"])), release_of(torch.__version__))
    device.install(job["file"], known, job["bypass"])
    with Path(job["events"]).open("a", encoding="utf-8") as file:
        recorder = Recorder(file, known, set(job["done"]), tuple(job["part"]))
        # Some files import from the parent folder, others from their own even if it is a package.
        sys.path += [job["folder"], str(Path(job["folder"], job["file"]).parent)]
        arguments = [
            *(str(Path(job["folder"], job["file"])), "--rootdir", job["folder"], "-c", os.devnull),
            *("--noconftest", "-p", "no:cacheprovider", "-p", "no:warnings", "-p", "no:xdist"),
            *("--import-mode=prepend", "--assert=plain", "--tb=short", "-q"),
            *(("-k", job["choose"]) if job["choose"] else ()),
        ]
        return int(pytest.main(arguments, plugins=[recorder]))


if __name__ == "__main__":
    sys.exit(main())
