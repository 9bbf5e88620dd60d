"""Tells the relay how a run stands. GitHub vouches for the repository with a token of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

AUDIENCE = "pytorch-cross-repo-ci-relay"
JOB = "gate"
ATTEMPTS = 4
SECONDS = 20
"""How long an answer may take."""


class ReportError(Exception):
    """The relay did not take a report; the text says why."""


class _Stay(HTTPRedirectHandler):
    """A token goes to the address that was given, and to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


def workflow(
    environment: Mapping[str, str], conclusion: str = "", counts: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Return what the relay is told of this run, from GitHub's own variables.

    Args:
        environment: Those variables.
        conclusion: How the gate ended; empty while it runs.
        counts: How many tests passed, failed and were skipped, if that is known.
    """
    server, repository = environment["GITHUB_SERVER_URL"], environment["GITHUB_REPOSITORY"]
    run, attempt = environment["GITHUB_RUN_ID"], environment["GITHUB_RUN_ATTEMPT"]
    url = f"{server}/{repository}/actions/runs/{run}"
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    told: dict[str, Any] = {
        "schema_version": "1",
        "status": "completed" if conclusion else "in_progress",
        "conclusion": conclusion or None,
        "name": environment["GITHUB_WORKFLOW"],
        "url": url,
        "run_id": run,
        "run_attempt": attempt,
        # The relay knows a job by its name: the two reports on it have the same one.
        "job_name": JOB,
        "check_run_id": f"{run}-{attempt}",
        "started_at": None if conclusion else now,
        "completed_at": now if conclusion else None,
    }
    if counts is not None:
        told |= {"test_results": {**counts, "total": sum(counts.values())}}
    return told


def send(address: str, echo: Mapping[str, Any], told: Mapping[str, Any], token: str) -> None:
    """Send a report, again after a pause where the relay is busy or out of order.

    Args:
        address: The relay's.
        echo: What the relay has sent, which comes back unchanged.
        told: What :func:`workflow` returns.
        token: What :func:`identity` returns.

    Raises:
        ReportError: It was refused, or nobody answered.
    """
    body = json.dumps({**echo, "workflow": told}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    _ask(Request(address, body, headers, method="POST"))


def identity(environment: Mapping[str, str]) -> str:
    """Return the token with which GitHub says to the relay which repository this is.

    Raises:
        ReportError: The job may not have one, or GitHub does not answer.
    """
    address = environment.get("ACTIONS_ID_TOKEN_REQUEST_URL")
    bearer = environment.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    if not address or not bearer:
        raise ReportError("the job has no identity: it needs the permission id-token")
    headers = {"Authorization": f"bearer {bearer}"}
    answer = json.loads(_ask(Request(f"{address}&audience={AUDIENCE}", headers=headers)))
    return str(answer["value"])


def _ask(request: Request) -> bytes:
    opener = build_opener(_Stay)
    for attempt in range(ATTEMPTS):
        try:
            with opener.open(request, timeout=SECONDS) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            why = f"{request.host} answers {error.code}: {ascii(error.read(200))[2:-1]}"
            if error.code < 500 and error.code != 429:
                break
        except (URLError, HTTPException, OSError) as error:
            why = f"{request.host} cannot be reached: {error}"
        if attempt + 1 < ATTEMPTS:
            time.sleep(2**attempt)
    raise ReportError(why)
