"""`python device/tests/check.py` on a device without most kernels, and without a library."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import check
import device_library
import pytest

PREFIX = device_library.ENV_PREFIX


def run(*arguments: str, library: Path | str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(Path(check.__file__)), *arguments],
        env={**os.environ, f"{PREFIX}_DEVICE_LIBRARY": str(library), "PYTHONPATH": ""},
        cwd=device_library.DEVICE_ROOT.parent,
        capture_output=True,
        text=True,
    )


def test_the_report_names_missing_functions_and_next_steps() -> None:
    done = run("starter")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "missing from families: " in done.stdout
    assert re.search(r"^\d+ cases work, \d+ are unsupported, 0 fail$", done.stdout, re.MULTILINE)
    steps = re.findall(r"^\d\. (.*)$", done.stdout, re.MULTILINE)
    assert len(steps) == 3
    # The starter supports copy and matmul for some arguments, and no softmax.
    assert steps[0] == "extend the family copy to its unsupported case"
    named = [re.fullmatch(r"(?:write|extend) the family (\w+)\b.*", step) for step in steps]
    assert {match and match[1] for match in named} <= set(check.FAMILIES)


def test_the_json_report_has_the_same_content() -> None:
    done = run("starter", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert set(report) == {"missing", "passed", "unsupported", "failed", "next"}
    assert "families.softmax" in report["missing"]
    assert "copy.py::test_copy" in {*report["passed"], *report["unsupported"]}
    assert (report["failed"], len(report["next"])) == ({}, 3)


def test_the_error_for_a_library_that_does_not_load_is_one_sentence(tmp_path: Path) -> None:
    done = run(library=tmp_path / "no.so")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"the device library cannot be loaded: {tmp_path / 'no.so'}")
    assert done.stdout == ""


def test_the_error_for_a_missing_device_is_one_sentence() -> None:
    done = run("nope")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"There is no device in {device_library.DEVICE_ROOT / 'nope'}")
    assert done.stdout == ""


NAMES = [
    *(("runtime", name) for name in check.RUNTIME),
    *(("kernels", name) for names in check.FAMILIES.values() for name in names),
]


@pytest.mark.parametrize(("folder", "name"), NAMES, ids=str)
def test_each_case_of_the_check_is_a_test(folder: str, name: str) -> None:
    file, _, function = name.partition("::")
    path = check.HERE / folder / f"test_{file}"
    if not path.exists():
        pytest.skip("this project has no such test: its feature is absent")
    assert f"def {function}(" in path.read_text("utf-8")
