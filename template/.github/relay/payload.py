"""Reads the relay's payload: a webhook of pytorch/pytorch inside an event of this repository.

The authors of pull requests write parts of it. All returned values have been checked; titles,
descriptions and names of forks are not read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

UPSTREAM = "pytorch/pytorch"
ACTIONS = ("opened", "reopened", "synchronize", "closed")
TESTED = re.compile(r"refs/heads/(main|release/[\w.]+)")
"""The branches on which a push is tested; other branches belong to pull requests."""
DELETED = "0" * 40
"""The commit that GitHub gives for a deleted branch or tag."""
LARGEST = 1 << 20
"""Bytes. GitHub accepts 64 KiB from the relay, and adds data of this repository."""


class InvalidPayloadError(Exception):
    """The event is not from the relay; the text has the reason."""


@dataclass(frozen=True)
class Event:
    """A commit of pytorch/pytorch, and what happened to it.

    Attributes:
        kind: ``pull_request`` or ``push``.
        sha: The commit, or ``DELETED``.
        action: One of ``ACTIONS``; empty for a push.
        number: The number of the pull request, or 0 for a push.
        labels: The labels of the pull request.
        ref: The branch or tag of a push; empty for a pull request.
        delivery: The webhook's id, by which the relay identifies a report; may be empty.
        echo: The whole payload, which is sent back with a report.
    """

    kind: str
    sha: str
    action: str
    number: int
    labels: frozenset[str]
    ref: str
    delivery: str
    echo: dict[str, Any]

    @property
    def name(self) -> str:
        """What was changed, for messages."""
        return f"pull request {self.number}" if self.number else "a push"

    def idle(self, label: str = "") -> str:
        """Return why there is nothing to test, or an empty text.

        Args:
            label: Only pull requests with this label are tested; with an empty one, all are.
        """
        if self.sha == DELETED:
            return "a branch or a tag was deleted"
        if self.kind == "push":
            return "" if TESTED.fullmatch(self.ref) else "it is neither main nor a release's branch"
        if self.action == "closed":
            return f"{self.name} is closed"
        return f"{self.name} has no label {label}" if label and label not in self.labels else ""


def read(path: Path) -> Event:
    """Read the event that GitHub has left in a file.

    Raises:
        InvalidPayloadError: The event is not from the relay.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise InvalidPayloadError(f"the event has {size} bytes; {LARGEST} are the most")
        event = _object(json.loads(path.read_bytes()), "the event")
    except OSError:
        raise InvalidPayloadError("GITHUB_EVENT_PATH names no file: GitHub sets it") from None
    except RecursionError:
        raise InvalidPayloadError("the event is nested too deeply") from None
    except ValueError:
        raise InvalidPayloadError("the event is not valid JSON") from None
    sent = _object(event.get("client_payload"), "client_payload")
    kind = _text(sent.get("event_type"), "event_type")
    if kind not in ("pull_request", "push"):
        raise _wrong("event_type", kind, "pull_request or push")
    _equal(event.get("action", kind), kind, "action of the event")
    payload = _object(sent.get("payload"), "payload")
    repository = _object(payload.get("repository"), "repository")
    _equal(repository.get("full_name"), UPSTREAM, "repository.full_name")
    if ("pull_request" in payload) != (kind == "pull_request"):
        raise InvalidPayloadError(f"event_type is {kind}, and the payload is of another kind")
    return (_pushed if kind == "push" else _requested)(payload, sent)


def _requested(payload: dict[str, Any], sent: dict[str, Any]) -> Event:
    action = _text(payload.get("action"), "action")
    if action not in ACTIONS:
        raise _wrong("action", action, f"one of {', '.join(ACTIONS)}")
    request = _object(payload["pull_request"], "pull_request")
    number = request.get("number")
    if type(number) is not int or not 0 < number < 1 << 31:
        raise _wrong("pull_request.number", number, "a positive number")
    _equal(payload.get("number", number), number, "number")
    if "base" in request:
        base = _object(_object(request["base"], "base").get("repo"), "base.repo")
        _equal(base.get("full_name"), UPSTREAM, "base.repo.full_name")
    sha = _sha(_object(request.get("head"), "head").get("sha"), "head.sha")
    if sha == DELETED:
        raise _wrong("head.sha", sha, "a commit")
    labels = request.get("labels", [])
    if not isinstance(labels, list):
        raise _wrong("labels", labels, "a list")
    names = frozenset(_text(_object(each, "label").get("name"), "label.name") for each in labels)
    return Event("pull_request", sha, action, number, names, "", _delivery(sent), sent)


def _pushed(payload: dict[str, Any], sent: dict[str, Any]) -> Event:
    ref, sha = _text(payload.get("ref"), "ref"), _sha(payload.get("after"), "after")
    if not ref.startswith(("refs/heads/", "refs/tags/")):
        raise _wrong("ref", ref, "a branch or a tag")
    if payload.get("deleted", sha == DELETED) is not (sha == DELETED):
        raise InvalidPayloadError(f"after is {sha}, and deleted is {_shown(payload['deleted'])}")
    return Event("push", sha, "", 0, frozenset(), ref, _delivery(sent), sent)


def _delivery(sent: dict[str, Any]) -> str:
    delivery = _text(sent.get("delivery_id") or "", "delivery_id")
    if not re.fullmatch(r"[0-9A-Za-z-]{0,100}", delivery):
        raise _wrong("delivery_id", delivery, "letters, digits and hyphens")
    return delivery


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(name, value, "an object")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    return value


def _sha(value: Any, name: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40}", _text(value, name)):
        raise _wrong(name, value, "40 hexadecimal digits")
    return str(value)


def _equal(value: Any, wanted: Any, name: str) -> None:
    if type(value) is not type(wanted) or value != wanted:
        raise _wrong(name, value, str(wanted))


def _wrong(name: str, value: Any, wanted: str) -> InvalidPayloadError:
    return InvalidPayloadError(f"{name} is {_shown(value)}, and has to be {wanted}")


def _shown(value: Any) -> str:
    """Return a value on one line, without control sequences of a terminal or GitHub's log."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = "nothing" if value is None else ascii(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
