"""Keeps one issue with the differences of PyTorch's nightly build.

`python .github/drift.py compare` runs the doctor of the installed backend on a nightly wheel.
`python .github/drift.py issue` opens, updates or closes the issue, in a job that may write issues.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

FOLDER = Path("build/drift")
"""Passed from one job to the other: ``changes.json``, and ``tests.xml`` if the tests ran."""
TITLE = "PyTorch's nightly build differs for this backend"
LABEL = "pytorch-nightly"
MOST = 200
"""Findings that an issue shows: GitHub allows 65536 characters."""
WIDEST = 300


class DriftError(Exception):
    """The nightly build cannot be compared; the text has the reason."""


@dataclass(frozen=True)
class Issue:
    """The issue on GitHub; a person may have changed its ``body``."""

    number: int
    open: bool
    body: str


def compare() -> None:
    """Write the differences that the doctor finds in the wheel under ``FOLDER``.

    Raises:
        DriftError: The doctor fails.
    """
    wheels = list(FOLDER.glob("torch-*.whl"))
    if len(wheels) != 1:
        raise DriftError(f"{FOLDER} has {len(wheels)} wheels of PyTorch, and one is needed")
    (package,) = (path.parent.name for path in Path("python").glob("*/doctor"))
    command = [sys.executable, "-m", f"{package}.doctor", "--json", "--against", str(wheels[0])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise DriftError(f"the doctor has ended with status {done.returncode}")
    found = {"torch": wheels[0].name.split("-")[1], "changes": json.loads(done.stdout)}
    (FOLDER / "changes.json").write_text(json.dumps(found, indent=2), "utf-8")
    print(f"{len(found['changes'])} differ in PyTorch {found['torch']}")


def findings(changes: list[dict[str, Any]], build: str, tests: str) -> Iterator[str]:
    """Yield a line for each finding, as Markdown.

    Args:
        changes: The differences that the doctor has found.
        build: The outcome of the build against the nightly wheel, as GitHub names it.
        tests: The outcome of the tests.
    """
    for each in changes:
        signatures = [_code(each[key]) for key in ("before", "after") if each[key]]
        yield f"- {each['kind']} {each['part']}: {' → '.join(signatures)}"
    if build != "success":
        yield "- the build against it fails"
    elif tests != "success":
        failed = sorted(_failed(FOLDER / "tests.xml"))
        yield from failed or ["- the tests against it end without a report"]


def _failed(report: Path) -> Iterator[str]:
    if report.is_file():
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                name = f"{case.get('classname')}::{case.get('name')}"
                yield f"- test: {_code(name)}"


def _code(text: str) -> str:
    text = " ".join(text.replace("`", "'").split())
    return f"`{text if len(text) <= WIDEST else text[:WIDEST] + '…'}`"


def body(lines: list[str], torch: str, run: str) -> str:
    """Return the issue's text. Its first line changes only with the findings."""
    mark = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    more = [f"- and {len(lines) - MOST} more"] if len(lines) > MOST else []
    text = f"Found with PyTorch {torch}, in [this run]({run})." if lines else "Nothing differs."
    return "\n".join([f"<!-- findings: {mark} -->", text, "", *lines[:MOST], *more, ""])


def keep() -> None:
    """Open, update or close the issue.

    Raises:
        DriftError: The previous job has left no readable result.
    """
    try:
        found = json.loads((FOLDER / "changes.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DriftError(f"the comparison has left no result: {error}") from None
    lines = list(findings(found["changes"], os.environ["BUILD"], os.environ["TESTS"]))
    text = body(lines, found["torch"], os.environ["RUN"])
    issue = _issue()
    if issue is None:
        if lines:
            _gh("label", "create", LABEL, "--force", "--description", TITLE)
            _gh("issue", "create", "--title", TITLE, "--label", LABEL, text=text)
        return
    # If a person closes the issue, it stays closed until the findings change.
    if issue.body.splitlines()[:1] == text.splitlines()[:1]:
        return
    known = set(issue.body.splitlines())
    number = str(issue.number)
    _gh("issue", "edit", number, text=text)
    if not lines:
        if issue.open:
            _gh("issue", "close", number, "--comment", f"Nothing differs in {found['torch']}.")
        return
    if not issue.open:
        _gh("issue", "reopen", number)
    if fresh := [line for line in lines[:MOST] if line not in known]:
        # GitHub notifies people of a comment, not of an edit.
        _gh("issue", "comment", number, text="\n".join([f"New in {found['torch']}:", "", *fresh]))


def _issue() -> Issue | None:
    asked = ["--label", LABEL, "--state", "all", "--json", "number,title,state,body"]
    rows = json.loads(_gh("issue", "list", *asked))
    numbered = {row["number"]: row for row in rows if row["title"] == TITLE}
    if not numbered:
        return None
    row = numbered[max(numbered)]
    return Issue(row["number"], row["state"] == "OPEN", row["body"])


def _gh(*arguments: str, text: str | None = None) -> str:
    """Run `gh`, with `text` in a file if given, and return its output."""
    with tempfile.TemporaryDirectory() as folder:
        more = []
        if text is not None:
            file = Path(folder) / "body.md"
            file.write_text(text, "utf-8")
            more = ["--body-file", str(file)]
        done = subprocess.run(
            ["gh", *arguments, *more], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        why = " ".join(done.stderr.split())
        raise DriftError(f"gh {' '.join(arguments[:2])} fails: {why}")
    return done.stdout


def main(arguments: list[str]) -> int:
    """Run `compare` or `issue`. Return 2 and print a sentence if that fails."""
    steps = {"compare": compare, "issue": keep}
    if len(arguments) != 1 or arguments[0] not in steps:
        print("usage: python .github/drift.py compare|issue", file=sys.stderr)
        return 2
    try:
        steps[arguments[0]]()
    except DriftError as error:
        print(f"drift: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
