"""Reports the state of a run to the relay, with a token that identifies the repository."""

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
"""Timeout of a response, in seconds."""


class ReportError(Exception):
    """The relay did not accept a report; the text has the reason."""


class _Stay(HTTPRedirectHandler):
    """Follows no redirects, so that the token is sent to the given address only."""

    def redirect_request(self, *_: Any) -> None:
        return None


def workflow(
    environment: Mapping[str, str], conclusion: str = "", counts: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Return the report on this run, from GitHub's own variables.

    Args:
        environment: Those variables.
        conclusion: The result of the gate; empty while it runs.
        counts: The numbers of tests that passed, failed and were skipped, if known.
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
        # The relay identifies a job by its name, so both reports have the same one.
        "job_name": JOB,
        "check_run_id": f"{run}-{attempt}",
        "started_at": None if conclusion else now,
        "completed_at": now if conclusion else None,
    }
    if counts is not None:
        told |= {"test_results": {**counts, "total": sum(counts.values())}}
    return told


def send(address: str, echo: Mapping[str, Any], told: Mapping[str, Any], token: str) -> None:
    """Send a report. Tries again after a pause if the relay is busy or fails.

    Args:
        address: The relay's address.
        echo: The payload that the relay has sent, which is returned unchanged.
        told: The result of :func:`workflow`.
        token: The result of :func:`identity`.

    Raises:
        ReportError: The relay refused the report or did not respond.
    """
    body = json.dumps({**echo, "workflow": told}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    _ask(Request(address, body, headers, method="POST"))


def identity(environment: Mapping[str, str]) -> str:
    """Return the token by which GitHub identifies this repository to the relay.

    Raises:
        ReportError: The job has no permission for a token, or GitHub does not respond.
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
