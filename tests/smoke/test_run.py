"""What a smoke run says of rows that fail; here a function stands in for renders and builds."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from commanding import run_python
from maintenance.smoke import report
from maintenance.smoke.answers import Row, features_of, space
from maintenance.smoke.run import Run, choose
from maintenance.smoke.shrink import MOST_TRIALS
from maintenance.smoke.trial import Extent, TrialResult
from torchsmith import catalog
from torchsmith.commands.common import parse
from torchsmith.errors import InputError

FEATURES = sorted(catalog.features())


def run(tmp_path: Path, broken: Callable[[Row], bool], jobs: int = 1) -> Run:
    """A pairwise run in which the rows that are ``broken`` fail to build."""

    def pretend(row: Row, slot: Path, extent: Extent) -> TrialResult:
        bad = broken(row)
        return TrialResult("build failed" if bad else "passed", 1.0, "error: <&> \x1b[31m" * bad)

    axes = space({})
    made = Run(axes, choose(axes, "pairwise"), Extent(), tmp_path, jobs, stand_in=pretend)
    made.execute()
    return made


@pytest.mark.parametrize("jobs", [1, 3])
def test_all_pass(tmp_path: Path, jobs: int) -> None:
    assert {result.state for result in run(tmp_path, lambda row: False, jobs).results} == {"passed"}


@pytest.mark.parametrize(
    "culprits",
    [{FEATURES[0]}, set(FEATURES[:2]), set(FEATURES)],
    ids=lambda on: "+".join(sorted(on)),
)
def test_the_smallest_failing_set_of_features_is_named(tmp_path: Path, culprits: set[str]) -> None:
    """With its command, in which everything else is ordinary."""
    failed = [
        result
        for result in run(tmp_path, lambda row: culprits <= features_of(row)).results
        if result.failed
    ]
    assert failed
    for result in failed:
        assert result.state == "build failed"
        assert set(result.smallest) == catalog.closure(frozenset(culprits))
        assert f"'features=[{', '.join(sorted(result.smallest))}]'" in result.repeat
        assert "-d backend_name=foo" in result.repeat
        assert "-d license=apache-2.0" in result.repeat
        assert "-d dtypes=default" in result.repeat


def test_a_row_has_failed_while_its_smallest_set_is_looked_for(tmp_path: Path) -> None:
    axes = space({})
    seen: list[tuple[bool, str]] = []

    def pretend(row: Row, slot: Path, extent: Extent) -> TrialResult:
        seen.extend((each.failed, each.state) for each in made.results if each.searching)
        return TrialResult("build failed" if features_of(row) else "passed", 1.0)

    made = Run(axes, choose(axes, "each")[:2], Extent(), tmp_path, stand_in=pretend)
    assert not any(result.searching for result in made.execute())
    assert set(seen) == {(True, "build failed")}


def test_what_is_not_a_features_fault_keeps_its_cause(tmp_path: Path) -> None:
    results = run(tmp_path, lambda row: row["license"] == "mit" and len(row["dtypes"]) == 3).results
    failed = [result for result in results if result.failed]
    assert failed
    for result in failed:
        assert result.smallest == ()
        assert "the core alone" in result.verdict
        assert "license=mit" in result.repeat
        assert "'dtypes=[bool, int64, float32]'" in result.repeat
        assert "backend_name=foo" in result.repeat


def test_a_failure_that_does_not_repeat_keeps_its_row(tmp_path: Path) -> None:
    seen: list[Row] = []

    def once(row: Row) -> bool:
        seen.append(row)
        return len(seen) == 1

    results = run(tmp_path, once).results
    first = seen[0]
    assert set(results[0].smallest) == features_of(first)
    assert len(seen) <= len(results) + MOST_TRIALS


def test_the_command_of_a_row_gives_that_row_alone() -> None:
    axes = space({})
    for row in choose(axes, "pairwise"):
        words = shlex.split(axes.command(row))
        again = space(parse([word for word in words if "=" in word]))
        rows = choose(again, "pairwise")
        assert len(rows) == 1
        assert again.answers(rows[0]) == axes.answers(row)


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "/"])
def test_a_shard_is_one_of_several(shard: str) -> None:
    with pytest.raises(InputError, match="write for instance 1/4"):
        choose(space({}), "each", shard)


def test_reports_hold_every_row_and_whatever_was_logged(tmp_path: Path) -> None:
    results = run(tmp_path, lambda row: FEATURES[0] in features_of(row)).results
    suite = ElementTree.fromstring(report.junit_xml(results))
    assert len(suite) == len(results) == int(suite.get("tests", 0))
    failures = suite.findall("testcase/failure")
    assert len(failures) == int(suite.get("failures", 0)) == sum(r.failed for r in results) > 0
    assert "smallest failing set: " + FEATURES[0] in failures[0].get("message", "")
    assert "<&>" in (failures[0].text or "")
    page = report.html_page(results)
    assert "error: &lt;&amp;&gt;" in page
    assert page.count("<tr>") == len(results) + 1
    assert f"{len(results) - len(failures)} of {len(results)} passed" in page


def test_the_command_renders_each_answer_and_writes_its_reports(tmp_path: Path) -> None:
    done = run_python(
        "-m", "torchsmith.cli", "smoke", "--strength", "each", "--until", "render", "--json",
        "--junit", str(tmp_path / "smoke.xml"), "--page", str(tmp_path / "smoke.html"),
    ).passed()  # fmt: skip
    rows = done.json
    assert len(rows) >= 4
    assert {row["state"] for row in rows} == {"passed"}
    assert "CPU time" in done.err
    assert (tmp_path / "smoke.html").read_text("utf-8").startswith("<!doctype html>")
    ElementTree.parse(tmp_path / "smoke.xml")


def test_a_row_that_cannot_be_rendered_fails_with_the_reason_and_its_command() -> None:
    done = run_python(
        "-m", "torchsmith.cli", "smoke", "-d", "backend_name=cuda", "-d", "preset=minimal",
        "-d", "license=mit", "-d", "ci_provider=none", "-d", "dtypes=default", "--until", "render",
    )  # fmt: skip
    assert done.status == 1
    assert "'cuda' is a device type of PyTorch's own" in done.err
    assert "repeat it with: torchsmith smoke -d backend_name=cuda" in done.err
    assert "Traceback" not in done.err
