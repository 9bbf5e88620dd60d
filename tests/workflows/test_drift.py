"""The rendered job `drift` and the issue that it maintains, with a fake GitHub."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from commanding import Ended, run, succeed
from rendering import Renderer
from torchsmith import catalog
from workflows.steps import step, workflow

GH = '''#!{python}
"""A fake GitHub, which stores issues and records the calls."""
import json, os, pathlib, sys
folder = pathlib.Path({folder!r})
words = sys.argv[1:]
with (folder / "asked").open("a") as file:
    file.write(json.dumps(words) + "\\n")
if (folder / "broken").exists():
    sys.exit("HTTP 502:\\nBad gateway")
options = dict(zip(words, words[1:]))
issues = json.loads((folder / "issues.json").read_text())
text = pathlib.Path(options["--body-file"]).read_text("utf-8") if "--body-file" in options else ""
match words[:2]:
    case ["label", "create"]:
        (folder / "labels").write_text(words[2])
    case ["issue", "list"]:
        assert options["--state"] == "all"
        there = [each for each in issues if options["--label"] in each["labels"]]
        keys = options["--json"].split(",")
        print(json.dumps([{{key: each[key] for key in keys}} for each in there]))
    case ["issue", "create"]:
        assert options["--label"] == (folder / "labels").read_text()
        number = len(issues) + 1
        issues.append({{"number": number, "title": options["--title"], "state": "OPEN",
                        "body": text, "labels": [options["--label"]], "comments": []}})
    case ["issue", action]:
        (issue,) = [each for each in issues if str(each["number"]) == words[2]]
        if action == "edit":
            issue["body"] = text.replace("\\n", "\\r\\n")
        elif action == "comment":
            issue["comments"].append(text)
        elif action == "close":
            issue["state"] = "CLOSED"
            issue["comments"].append(options["--comment"])
        elif action == "reopen":
            issue["state"] = "OPEN"
        else:
            sys.exit(action)
(folder / "issues.json").write_text(json.dumps(issues))
'''
NEW = {"part": "operator", "name": "new", "before": "", "after": "new(Tensor x) -> Tensor"}
CHANGED = {
    "part": "DeviceGuardImplInterface",
    "name": "a",
    "before": "void a()",
    "after": "int a()",
}
GONE = {"part": "HooksInterface", "name": "b", "before": "bool b() const", "after": ""}
KINDS = {"new": NEW, "changed": CHANGED, "gone": GONE}
HOSTILE = {
    **NEW,
    "after": "x(`$(touch stolen)`)\n\n@everybody\n# <!-- findings: -->" + "y" * 90_000,
}


@dataclass
class Nights:
    """A project, and the fake GitHub of its nightly job."""

    project: Path
    folder: Path
    script: str

    @property
    def issues(self) -> list[dict[str, Any]]:
        """Return all issues."""
        found: list[dict[str, Any]] = json.loads((self.folder / "issues.json").read_text("utf-8"))
        return found

    @property
    def asked(self) -> list[list[str]]:
        """Return the calls to GitHub, except `issue list`."""
        rows = map(json.loads, (self.folder / "asked").read_text("utf-8").splitlines())
        return [row for row in rows if row[:2] != ["issue", "list"]]

    def night(
        self,
        *kinds: str | dict[str, Any],
        build: str = "success",
        tests: str = "success",
        failed: tuple[str, ...] = (),
        torch: str = "2.16.0.dev20261101+cpu",
    ) -> Ended:
        """Run the job that maintains the issue, after a night with some kinds of changes."""
        changes = [
            {"kind": kind, **KINDS[kind]} if isinstance(kind, str) else {"kind": "new", **kind}
            for kind in kinds
        ]
        found = self.project / "build" / "drift"
        found.mkdir(parents=True, exist_ok=True)
        (found / "changes.json").write_text(json.dumps({"torch": torch, "changes": changes}))
        cases = "".join(
            f'<testcase classname="tests.core.test_a" name="{name}"><failure/></testcase>'
            for name in failed
        )
        cases += '<testcase classname="t" name="ok"/>'
        report = f"<testsuites><testsuite>{cases}</testsuite></testsuites>"
        (found / "tests.xml").write_text(report, "utf-8")
        return self.run(BUILD=build, TESTS=tests)

    def run(self, **variables: str) -> Ended:
        """Run the step."""
        (self.folder / "asked").write_text("")
        variables = {"BUILD": "success", "TESTS": "success", "RUN": "https://run/1", **variables}
        return run("bash", "-eo", "pipefail", "-c", self.script, cwd=self.project, **variables)


@pytest.fixture
def nights(render: Renderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    """Return a project with the feature `relay`, before its first night."""
    project = render.project(tmp_path / "project", features=["relay"])
    folder = tmp_path / "github"
    (folder / "bin").mkdir(parents=True)
    gh = folder / "bin" / "gh"
    gh.write_text(GH.format(python=sys.executable, folder=str(folder)), "utf-8")
    gh.chmod(0o755)
    (folder / "issues.json").write_text("[]")
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    job = workflow(project, "drift.yml")["jobs"]["drift-issue"]
    return Nights(project, folder, step(job, "drift.py issue")["run"])


def test_findings_open_one_issue_that_lists_them_all(nights: Nights) -> None:
    nights.night("new", "changed", "gone").passed()
    (issue,) = nights.issues
    assert issue["title"] == "PyTorch's nightly build differs for this backend"
    lines = issue["body"].splitlines()
    assert "- new operator: `new(Tensor x) -> Tensor`" in lines
    assert "- changed DeviceGuardImplInterface: `void a()` → `int a()`" in lines
    assert "- gone HooksInterface: `bool b() const`" in lines
    assert "2.16.0.dev20261101+cpu" in issue["body"]
    assert "https://run/1" in issue["body"]


def test_no_new_finding_makes_no_call_to_github(nights: Nights) -> None:
    nights.night().passed()
    assert (nights.asked, nights.issues) == ([], [])
    nights.night("new").passed()
    nights.night("new", torch="2.16.0.dev20261102+cpu").passed()
    assert nights.asked == []
    assert "dev20261101" in nights.issues[0]["body"]


def test_new_findings_are_added_to_the_issue_with_a_comment(nights: Nights) -> None:
    nights.night("new").passed()
    nights.night("new", "gone").passed()
    (issue,) = nights.issues
    (comment,) = issue["comments"]
    assert "bool b() const" in comment
    assert "new(Tensor x)" not in comment
    assert "bool b() const" in issue["body"]
    # Also after GitHub has changed the line endings.
    nights.night("new", "gone").passed()
    assert nights.asked == []


def test_resolved_findings_are_removed_without_a_comment(nights: Nights) -> None:
    nights.night("new", "gone").passed()
    nights.night("gone").passed()
    (issue,) = nights.issues
    assert (issue["state"], issue["comments"]) == ("OPEN", [])
    assert "new(Tensor x)" not in issue["body"]


def test_the_issue_is_closed_without_findings_and_reopened_with_new_ones(nights: Nights) -> None:
    nights.night("new").passed()
    nights.night().passed()
    (issue,) = nights.issues
    assert issue["state"] == "CLOSED"
    nights.night().passed()
    assert nights.asked == []
    nights.night("new").passed()
    (issue,) = nights.issues
    assert issue["state"] == "OPEN"
    assert "new(Tensor x)" in issue["body"]


def test_an_issue_closed_by_a_user_is_reopened_only_by_new_findings(nights: Nights) -> None:
    nights.night("new").passed()
    issues = nights.issues
    issues[0]["state"] = "CLOSED"
    (nights.folder / "issues.json").write_text(json.dumps(issues))
    nights.night("new").passed()
    assert nights.asked == []
    nights.night("new", "changed").passed()
    assert [issue["state"] for issue in nights.issues] == ["OPEN"]


def test_other_issues_are_not_changed(nights: Nights) -> None:
    title = "PyTorch's nightly build differs for this backend"
    row = {"number": 1, "state": "OPEN", "body": "", "comments": []}
    others = [
        {**row, "title": title, "labels": ["question"]},
        {**row, "number": 2, "title": "Another", "labels": ["pytorch-nightly"]},
    ]
    (nights.folder / "issues.json").write_text(json.dumps(others))
    nights.night("new").passed()
    assert nights.issues[:2] == others
    assert len(nights.issues) == 3


def test_a_failed_build_and_failed_tests_are_findings(nights: Nights) -> None:
    nights.night(build="failure", tests="skipped").passed()
    assert "- the build against it fails" in nights.issues[0]["body"].splitlines()
    nights.night(tests="failure", failed=("test_x[a`b]", "test_y")).passed()
    lines = nights.issues[0]["body"].splitlines()
    assert "- test: `tests.core.test_a::test_x[a'b]`" in lines
    assert "- test: `tests.core.test_a::test_y`" in lines
    assert "- the build against it fails" not in lines
    nights.night(tests="failure").passed()
    assert "end without a report" in nights.issues[0]["body"]


def test_texts_of_findings_are_quoted_and_limited_in_the_issue(nights: Nights) -> None:
    nights.night(HOSTILE, *[{**NEW, "after": f"op{index}()"} for index in range(400)]).passed()
    (issue,) = nights.issues
    assert len(issue["body"]) < 65_000
    (line,) = [line for line in issue["body"].splitlines() if "stolen" in line]
    assert line.startswith("- new operator: `x('$(touch stolen)')")
    assert line.count("`") == 2
    assert "- and 201 more" in issue["body"]
    assert not (nights.project / "stolen").exists()


@pytest.mark.parametrize("content", [None, "", "{"])
def test_a_failed_comparison_does_not_close_the_issue(content: str | None, nights: Nights) -> None:
    nights.night("new").passed()
    file = nights.project / "build" / "drift" / "changes.json"
    file.unlink() if content is None else file.write_text(content)
    done = nights.run()
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("drift: the comparison has left no result")
    assert [issue["state"] for issue in nights.issues] == ["OPEN"]


def test_an_error_of_github_is_one_sentence(nights: Nights) -> None:
    (nights.folder / "broken").touch()
    done = nights.night("new")
    assert (done.status, done.err) == (2, "drift: gh issue list fails: HTTP 502: Bad gateway\n")


DOCTOR = """
import sys
assert sys.argv[1:3] == ["--json", "--against"] and sys.argv[3].endswith(".whl"), sys.argv
print("noise", file=sys.stderr)
print('[{"kind": "new", "part": "operator", "name": "a", "before": "", "after": "a()"}]')
sys.exit(STATUS)
"""


@pytest.mark.parametrize(("status", "ended"), [(0, 0), (1, 0), (2, 2)])
def test_compare_runs_the_doctor_against_the_wheel(status: int, ended: int, nights: Nights) -> None:
    job = workflow(nights.project, "drift.yml")["jobs"]["drift"]
    script = step(job, "drift.py compare")["run"].replace("python ", "python3 ", 1)
    doctor = nights.project / "python" / "torch_foo" / "doctor"
    (doctor / "__main__.py").write_text(DOCTOR.replace("STATUS", str(status)), "utf-8")
    for name in ("python/torch_foo/__init__.py", "python/torch_foo/doctor/__init__.py"):
        (nights.project / name).write_text("", "utf-8")
    drift = nights.project / "build" / "drift"
    drift.mkdir(parents=True)
    variables = {"PYTHONPATH": str(nights.project / "python")}
    done = run("bash", "-c", script, cwd=nights.project, **variables)
    assert (done.status, done.err) == (
        2,
        "drift: build/drift has 0 wheels of PyTorch, and one is needed\n",
    )
    (drift / "torch-2.16.0.dev20261101+cpu-cp312-cp312-linux_x86_64.whl").touch()
    done = run("bash", "-c", script, cwd=nights.project, **variables)
    assert done.status == ended, done
    written = drift / "changes.json"
    assert written.exists() is (ended == 0)
    if ended == 0:
        content = json.loads(written.read_text("utf-8"))
        assert content["torch"] == "2.16.0.dev20261101+cpu"
        assert [change["name"] for change in content["changes"]] == ["a"]


def test_only_the_job_that_maintains_the_issue_may_write(nights: Nights) -> None:
    content = workflow(nights.project, "drift.yml")
    assert content["permissions"] == {"contents": "read"}
    allowed = {
        name: job["permissions"] for name, job in content["jobs"].items() if "permissions" in job
    }
    assert allowed == {"drift-issue": {"contents": "read", "issues": "write"}}
    assert "pip" not in str(content["jobs"]["drift-issue"])


def test_the_newest_release_is_compared_with_the_nightly_build(render: Renderer) -> None:
    newest = catalog.torch_window()["versions"][-1]
    for provider, name in (
        ("github", ".github/workflows/drift.yml"),
        ("gitlab", ".gitlab/drift.yml"),
    ):
        content = yaml.safe_load(
            (render(ci_provider=provider, features=["relay"]) / name).read_text("utf-8")
        )
        job = str(content.get("jobs", content)["drift"])
        assert "torch==$NEWEST.*" in job
        assert f"'NEWEST': '{newest}'" in job
        assert "whl/nightly/cpu" in job


def test_the_script_passes_mypy(nights: Nights, shared: Path) -> None:
    cache = f"--cache-dir={shared / 'mypy-scripts'}"
    succeed("mypy", "--strict", cache, ".github/drift.py", cwd=nights.project)
