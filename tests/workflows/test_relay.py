"""The rendered workflow `relay`: permissions, cancelled runs, and reports to PyTorch."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from commanding import succeed
from rendering import Renderer
from workflows.payloads import sent
from workflows.steps import Checkout, step, workflow

COUNTS = {"passed": 3, "failed": 1, "skipped": 2}


@pytest.fixture
def relay(render: Renderer) -> dict[str, Any]:
    """Return the rendered workflow."""
    return workflow(render(features=["relay"]), "relay.yml")


def texts(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every text of a workflow with the keys that lead to it."""
    if isinstance(node, dict | list):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            yield from texts(value, (*path, str(key)))
    elif isinstance(node, str):
        yield path, node


def test_scripts_contain_no_expressions_event_texts_or_secrets(
    relay: dict[str, Any],
) -> None:
    found = dict(texts(relay))
    scripts = [text for path, text in found.items() if path[-1] == "run" and "steps" in path]
    assert [script for script in scripts if "${{" in script] == []
    sent = {path for path, text in found.items() if "github.event" in text}
    assert sent == {("run-name",), ("concurrency", "group")}
    assert [text for text in found.values() if "secrets" in text or "github.token" in text] == []
    assert sum(".github/relay" in script for script in scripts) == 4


def test_the_gate_job_has_read_permissions_only(relay: dict[str, Any]) -> None:
    jobs = relay["jobs"]
    assert relay["permissions"] == jobs["gate"]["permissions"] == {"contents": "read"}
    assert jobs["gate"]["timeout-minutes"] == 180
    for name in ("plan", "report"):
        assert jobs[name]["permissions"] == {"contents": "read", "id-token": "write"}
        assert "pytorch/pytorch" not in str(jobs[name])
        assert "pip" not in str([each.get("run") for each in jobs[name]["steps"]])
    checkouts = [
        each["with"]
        for job in jobs.values()
        for each in job["steps"]
        if "actions/checkout@" in each.get("uses", "")
    ]
    assert [each["persist-credentials"] for each in checkouts] == [False] * 4
    (pytorch,) = [each for each in checkouts if "repository" in each]
    assert pytorch["ref"] == "${{ needs.plan.outputs.sha }}"


def test_pull_requests_do_not_write_to_the_cache(relay: dict[str, Any]) -> None:
    steps = relay["jobs"]["gate"]["steps"]
    uses = {each["uses"].partition("@")[0]: each for each in steps if "uses" in each}
    assert "actions/cache" not in uses
    assert "needs.plan.outputs.event == 'push'" in uses["actions/cache/save"]["if"]


def test_the_gate_runs_only_if_the_plan_requests_it(relay: dict[Any, Any]) -> None:
    jobs = relay["jobs"]
    assert relay[True] == {"repository_dispatch": {"types": ["pull_request", "push"]}}
    assert jobs["gate"]["if"] == "needs.plan.outputs.run == 'true'"
    assert jobs["report"]["if"].startswith("always() && needs.plan.result == 'success' && ")
    assert "needs.plan.outputs.run == 'true'" in jobs["report"]["if"]
    assert set(jobs["plan"]["outputs"]) == {"run", "event", "sha", "level", "pytorch"}


def group(relay: dict[str, Any], event: dict[str, Any]) -> str:
    """Return the concurrency group of an event: evaluates GitHub's `a || b` on its paths."""
    expression = re.search(r"\$\{\{ (.*) \}\}", relay["concurrency"]["group"])
    assert expression
    for path in expression[1].split(" || "):
        value: Any = {"event": event}
        for key in path.removeprefix("github.").split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value:
            return str(value)
    raise AssertionError(expression[1])


def test_a_newer_commit_or_closing_cancels_the_run(relay: dict[str, Any]) -> None:
    assert relay["concurrency"]["cancel-in-progress"] is True
    names = ("opened", "synchronize", "closed", "push")
    groups = {name: group(relay, sent(name)) for name in names}
    assert groups["opened"] == groups["synchronize"] == groups["closed"] == "191234"
    assert groups["push"] == sent("push")["client_payload"]["payload"]["after"]


@pytest.fixture
def gate(relay: dict[str, Any]) -> str:
    """Return the script of the step that runs the tests."""
    return str(step(relay["jobs"]["gate"], "relay gate")["run"]).replace("python ", "python3 ", 1)


@pytest.fixture
def small(render: Renderer, tmp_path: Path) -> Checkout:
    """Return a checkout whose tests take seconds: two pass, one fails, one is skipped."""
    checkout = Checkout.of(render, tmp_path)
    for name in ("tests", "device/tests", "examples"):
        succeed("rm", "-rf", checkout.project / name)
        (checkout.project / name).mkdir()
    lines = {
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "examples/quickstart.py": "print('hello')\n",
        "device/tests/test_device.py": "def test_device(): pass\n",
        "tests/core/test_core.py": (
            "import pytest\ndef test_good(): pass\ndef test_bad(): assert 0\n"
            "def test_left(): pytest.skip('x')\n"
        ),
        "tests/amp/test_amp.py": "def test_amp(): pass\n",
        "tests/pytorch/__main__.py": (
            "import json, os, pathlib\nassert os.environ['PYTORCH_SOURCE'] == '/source'\n"
            "totals = {'pass': 100, 'xfail': 5, 'skip': 15}\n"
            "pathlib.Path('pytorch-tests.json').write_text(json.dumps({'totals': totals}))\n"
        ),
    }
    for name, text in lines.items():
        file = checkout.project / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    return checkout


@pytest.mark.parametrize(
    ("level", "counts"),
    [("L1", (2, 1, 1)), ("L2", (4, 1, 1)), ("L3", (104, 1, 21)), ("L4", (104, 1, 21))],
)
def test_each_level_runs_all_its_tests_after_a_failure(
    level: str, counts: tuple[int, int, int], gate: str, small: Checkout
) -> None:
    variables = {"RELAY_LEVEL": level, "RELAY_CALLBACK": "https://relay.invalid"}
    done = small.run(gate, {}, PYTORCH_SOURCE="/source", **variables)
    assert done.status == 1, done
    results = small.project / "build" / "relay" / "results.json"
    assert tuple(json.loads(results.read_text("utf-8")).values()) == counts


def test_a_gate_that_passes_has_status_0(gate: str, small: Checkout) -> None:
    (small.project / "tests" / "core" / "test_core.py").write_text("def test_it(): pass\n", "utf-8")
    small.run(gate, {}).passed()


@dataclass
class Relay:
    """A fake GitHub, which issues tokens, and a fake relay with prepared answers."""

    address: str
    answers: list[int] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables that GitHub and the repository set."""
        return {
            "RELAY_LEVEL": "L2",
            "RELAY_CALLBACK": f"{self.address}/github/callback/",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.address}/token?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "of the job",
        }


@pytest.fixture
def server() -> Iterator[Relay]:
    """Run the fake GitHub and the fake relay on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fake.requests.append((self.path, self.headers["Authorization"]))
            self.answer(200, {"value": "of the repository"})

        def do_POST(self) -> None:
            fake.requests.append((self.path, self.headers["Authorization"]))
            fake.reports.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.answer(fake.answers.pop(0) if fake.answers else 200, {"detail": "::error::no\n"})

        def answer(self, status: int, content: dict[str, str]) -> None:
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{fake.address}/elsewhere")
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        fake = Relay(f"http://127.0.0.1:{http.server_port}")
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield fake
        http.shutdown()
        thread.join()


@pytest.fixture
def start(relay: dict[str, Any]) -> str:
    """Return the script of the step that reports the start of the gate."""
    return str(step(relay["jobs"]["plan"], "relay start")["run"])


@pytest.fixture
def report(relay: dict[str, Any]) -> str:
    """Return the script of the step that reports the result of the gate."""
    return str(step(relay["jobs"]["report"], "relay report")["run"])


def write_results(checkout: Checkout, content: str | bytes) -> None:
    """Write the content of the gate's artifact."""
    file = checkout.project / "build" / "relay" / "results.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_the_start_and_the_result_are_reported_to_the_relay(
    start: str, report: str, checkout: Checkout, server: Relay
) -> None:
    event = sent("opened")
    checkout.run(start, event, **server.variables).passed()
    write_results(checkout, json.dumps(COUNTS))
    checkout.run(report, event, RESULT="failure", **server.variables).passed()
    first, second = server.reports
    for body in (first, second):
        assert (body["workflow"]["run_id"], body["workflow"]["run_attempt"]) == ("9071", "2")
        assert body["workflow"]["url"] == "https://github.com/acme/torch-foo/actions/runs/9071"
        assert {**body, "workflow": {}} == {**event["client_payload"], "workflow": {}}
    assert first["workflow"]["job_name"] == second["workflow"]["job_name"]
    assert (first["workflow"]["status"], first["workflow"]["conclusion"]) == ("in_progress", None)
    assert (second["workflow"]["status"], second["workflow"]["conclusion"]) == (
        "completed", "failure",
    )  # fmt: skip
    assert second["workflow"]["test_results"] == {**COUNTS, "total": 6}
    assert set(server.requests) == {
        ("/token?api-version=2.0&audience=pytorch-cross-repo-ci-relay", "bearer of the job"),
        ("/github/callback/", "Bearer of the repository"),
    }
    assert "**failure**" in checkout.summary
    assert "3 passed, 1 failed, 2 skipped" in checkout.summary
    assert "torch.equal" not in checkout.summary


def test_nothing_is_sent_at_l1(start: str, report: str, checkout: Checkout, server: Relay) -> None:
    write_results(checkout, json.dumps(COUNTS))
    variables = {**server.variables, "RELAY_LEVEL": ""}
    checkout.run(start, sent("opened"), **variables).passed()
    checkout.run(report, sent("opened"), RESULT="success", **variables).passed()
    assert (server.requests, server.reports) == ([], [])
    assert "**success**" in checkout.summary


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1, 2]",
        '{"passed": -1, "failed": 0, "skipped": 0}',
        '{"passed": 1e9, "failed": 0, "skipped": 0}',
        '{"passed": true, "failed": 0, "skipped": 0}',
        '{"passed": "1 **bold**", "failed": 0, "skipped": 0}',
        '{"passed": 12345678901234567890, "failed": 0, "skipped": 0}',
        "[" * 200_000,
        b"\xff",
        " " * (1 << 21),
    ],
    ids=["none", "list", "negative", "float", "true", "text", "large", "deep", "bytes", "huge"],
)
def test_invalid_results_of_the_gate_are_not_reported(
    content: str | bytes, report: str, checkout: Checkout, server: Relay
) -> None:
    write_results(checkout, content)
    checkout.run(report, sent("opened"), RESULT="success", **server.variables).passed()
    (body,) = server.reports
    assert "test_results" not in body["workflow"]
    assert body["workflow"]["conclusion"] == "success"
    assert "no figures" in checkout.summary


def test_only_the_counts_of_the_results_are_reported(
    report: str, checkout: Checkout, server: Relay
) -> None:
    write_results(checkout, json.dumps({**COUNTS, "conclusion": "success", "<b>": 1}))
    checkout.run(report, sent("opened"), RESULT="cancelled", **server.variables).passed()
    assert server.reports[0]["workflow"]["test_results"] == {**COUNTS, "total": 6}
    assert server.reports[0]["workflow"]["conclusion"] == "cancelled"


def test_a_report_is_sent_again_if_the_relay_is_busy(
    start: str, checkout: Checkout, server: Relay
) -> None:
    server.answers = [429, 503]
    checkout.run(start, sent("opened"), **server.variables).passed()
    assert len(server.reports) == 3
    assert server.reports[0] == server.reports[2]


@pytest.mark.parametrize("status", [302, 400, 403])
def test_a_refused_report_is_one_sentence_and_sends_no_token_elsewhere(
    status: int, start: str, checkout: Checkout, server: Relay
) -> None:
    server.answers = [status]
    done = checkout.run(start, sent("opened"), **server.variables)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1), done
    assert f"answers {status}" in done.err
    assert "of the repository" not in done.err
    assert [path for path, _ in server.requests if "elsewhere" in path] == []
    assert len(server.reports) == 1


def test_nothing_is_sent_without_an_identity_token(
    start: str, checkout: Checkout, server: Relay
) -> None:
    variables = {**server.variables, "ACTIONS_ID_TOKEN_REQUEST_URL": ""}
    done = checkout.run(start, sent("opened"), **variables)
    assert (done.status, server.reports) == (2, [])
    assert "id-token" in done.err


@pytest.mark.parametrize("result", ["", "skipped", "success\nx", "$(touch stolen)"])
def test_an_invalid_job_result_is_refused(
    result: str, report: str, checkout: Checkout, server: Relay
) -> None:
    done = checkout.run(report, sent("opened"), RESULT=result, **server.variables)
    assert (done.status, server.reports, done.err.count("\n")) == (2, [], 1)


def test_the_scripts_pass_mypy(render: Renderer, shared: Path) -> None:
    project = render(features=["relay"])
    cache = f"--cache-dir={shared / 'mypy-scripts'}"
    succeed("mypy", "--strict", cache, ".github/relay", cwd=project)
