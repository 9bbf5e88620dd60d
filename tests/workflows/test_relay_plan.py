"""Payloads of PyTorch's relay, run through the steps, including invalid and hostile ones."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from rendering import Renderer
from workflows.payloads import OPENED, PUSHED, SYNCHRONIZED, sent
from workflows.steps import Checkout, step, workflow

BODY = ("client_payload", "payload")
REQUEST = (*BODY, "pull_request")
REPORTING = {"RELAY_LEVEL": "L2", "RELAY_CALLBACK": "https://relay.invalid/callback"}

HOSTILE = [
    "$(touch stolen)",
    "`touch stolen`",
    "'; touch stolen; '",
    '"; touch stolen; "',
    "x\nrun=true\nsha=" + "a" * 40,
    "x\r\nlevel<<END\nL4\nEND",
    "::set-output name=run::true",
    "\n::add-mask::true\n::stop-commands::x",
    "${{ secrets.GITHUB_TOKEN }}",
    "-rf --upload-pack=touch stolen",
    "../../../../etc/passwd\0",
    "\u202egnp.\u2066\U0001f600\ud800",
    "x" * 60_000,
]
IDS = [f"{index}:{text[:12]!a}" for index, text in enumerate(HOSTILE)]
TEXTS = [
    (*REQUEST, "title"),
    (*REQUEST, "body"),
    (*REQUEST, "user", "login"),
    (*REQUEST, "head", "ref"),
    (*REQUEST, "head", "label"),
    (*REQUEST, "head", "repo", "full_name"),
    (*REQUEST, "base", "ref"),
    (*REQUEST, "labels", 0, "name"),
    (*BODY, "sender", "login"),
]
"""Texts that any author of a pull request can write."""
CHECKED = [
    (*REQUEST, "head", "sha"),
    (*REQUEST, "number"),
    (*REQUEST, "base", "repo", "full_name"),
    (*BODY, "action"),
    (*BODY, "repository", "full_name"),
    ("client_payload", "event_type"),
    ("client_payload", "delivery_id"),
]

INVALID_EVENTS: dict[str, tuple[str, tuple[str | int, ...], object]] = {
    "a null event": ("opened", ("client_payload",), None),
    "an event that is a list": ("opened", ("client_payload",), [1]),
    "another kind of event": ("opened", ("client_payload", "event_type"), "issues"),
    "no event kind": ("opened", ("client_payload", "event_type"), None),
    "a push with a pull request": ("opened", ("client_payload", "event_type"), "push"),
    "a pull_request event without a pull request": (
        "push",
        ("client_payload", "event_type"),
        "pull_request",
    ),
    "another event kind in the action": ("opened", ("action",), "push"),
    "no payload": ("opened", BODY, None),
    "a payload that is text": ("opened", BODY, "{}"),
    "another owner": ("opened", (*BODY, "repository", "full_name"), "pytorch-mirror/pytorch"),
    "another repository": ("opened", (*BODY, "repository", "full_name"), "pytorch/vision"),
    "a repository name with another line": (
        "opened",
        (*BODY, "repository", "full_name"),
        "pytorch/pytorch\n",
    ),
    "no repository": ("push", (*BODY, "repository"), None),
    "null for the pull request": ("opened", REQUEST, None),
    "a list of pull requests": ("opened", REQUEST, []),
    "another action": ("opened", (*BODY, "action"), "labeled"),
    "an action that is a number": ("opened", (*BODY, "action"), 1),
    "a number that is text": ("opened", (*REQUEST, "number"), "191234"),
    "a number that is true": ("opened", (*REQUEST, "number"), True),
    "a number below one": ("opened", (*REQUEST, "number"), -1),
    "a fraction": ("opened", (*REQUEST, "number"), 191234.0),
    "two numbers": ("opened", (*BODY, "number"), 5),
    "a commit that is short": ("opened", (*REQUEST, "head", "sha"), OPENED[:39]),
    "a commit that is long": ("opened", (*REQUEST, "head", "sha"), OPENED + "0"),
    "a commit with another line": ("opened", (*REQUEST, "head", "sha"), OPENED + "\n"),
    "a commit in capitals": ("opened", (*REQUEST, "head", "sha"), OPENED.upper()),
    "a commit in other digits": ("opened", (*REQUEST, "head", "sha"), "\u0663" * 40),
    "a commit that is a branch": ("opened", (*REQUEST, "head", "sha"), "main"),
    "a commit of zeros": ("opened", (*REQUEST, "head", "sha"), "0" * 40),
    "a list of commits": ("opened", (*REQUEST, "head", "sha"), [OPENED]),
    "no head": ("opened", (*REQUEST, "head"), None),
    "another base": ("opened", (*REQUEST, "base", "repo", "full_name"), "somebody/pytorch"),
    "no base": ("opened", (*REQUEST, "base"), None),
    "labels that are text": ("opened", (*REQUEST, "labels"), "ciflow/crcr/foo"),
    "a label without a name": ("opened", (*REQUEST, "labels", 0), {}),
    "a push without a commit": ("push", (*BODY, "after"), None),
    "a push of a branch": ("push", (*BODY, "after"), "main"),
    "a push that deletes a commit": ("push", (*BODY, "deleted"), True),
    "a deletion with deleted=false": ("push_deleted", (*BODY, "deleted"), False),
    "a ref that is a number": ("push", (*BODY, "ref"), 7),
    "a ref without refs/heads/": ("push", (*BODY, "ref"), "main"),
    "a delivery that is an object": ("push", ("client_payload", "delivery_id"), {"a": 1}),
}


def changed(
    name: str | dict[str, Any], place: tuple[str | int, ...], value: object
) -> dict[str, Any]:
    """Return an event, given by its name or itself, with one value changed."""
    event = sent(name) if isinstance(name, str) else copy.deepcopy(name)
    holder: Any = event
    for key in place[:-1]:
        holder = holder[key]
    last: Any = place[-1]
    assert isinstance(holder, list) or last in holder
    holder[last] = value
    return event


@pytest.fixture
def plan(render: Renderer) -> str:
    """Return the script of the step that reads the payload."""
    jobs = workflow(render(features=["relay"]), "relay.yml")["jobs"]
    return str(step(jobs["plan"], "relay plan")["run"])


@pytest.mark.parametrize(
    ("name", "event", "sha"),
    [
        ("opened", "pull_request", OPENED),
        ("synchronize", "pull_request", SYNCHRONIZED),
        ("push", "push", PUSHED),
    ],
)
def test_a_commit_is_tested_at_the_level_of_the_repository(
    name: str, event: str, sha: str, plan: str, checkout: Checkout
) -> None:
    for variables in ({}, REPORTING, {**REPORTING, "RELAY_LEVEL": "L3"}):
        done = checkout.run(plan, sent(name), **variables).passed()
        level = variables.get("RELAY_LEVEL", "L1")
        assert checkout.outputs == {
            "run": "true", "event": event, "sha": sha, "level": level, "pytorch": "source",
        }  # fmt: skip
        assert sha in done.out
        assert f"the gate of {level}" in done.out
    assert checkout.untouched()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("closed", "pull request 191234 is closed"),
        ("push_tag", "neither main nor a release's branch"),
        ("push_deleted", "a branch or a tag was deleted"),
    ],
)
def test_an_event_that_needs_no_test_is_skipped_with_a_reason(
    name: str, why: str, plan: str, checkout: Checkout
) -> None:
    assert why in checkout.run(plan, sent(name)).passed().out
    assert checkout.outputs["run"] == "false"


def test_a_release_branch_is_tested_and_other_branches_are_not(
    plan: str, checkout: Checkout
) -> None:
    for ref, wanted in {"release/2.16": "true", "main-2": "false", "gh/a/1/head": "false"}.items():
        checkout.run(plan, changed("push", (*BODY, "ref"), f"refs/heads/{ref}")).passed()
        assert checkout.outputs["run"] == wanted


def test_relay_label_selects_pull_requests_and_not_pushes(plan: str, checkout: Checkout) -> None:
    for label, wanted in {"ciflow/crcr/foo": "true", "ciflow/crcr/fo": "false"}.items():
        checkout.run(plan, sent("opened"), RELAY_LABEL=label).passed()
        assert checkout.outputs["run"] == wanted
    # A push has no labels.
    checkout.run(plan, sent("push"), RELAY_LABEL="ciflow/crcr/foo").passed()
    assert checkout.outputs["run"] == "true"


def test_a_pull_request_of_a_deleted_fork_is_accepted(plan: str, checkout: Checkout) -> None:
    checkout.run(plan, changed("opened", (*REQUEST, "head", "repo"), None)).passed()
    assert checkout.outputs["sha"] == OPENED


def test_the_documented_minimal_event_is_accepted(plan: str, checkout: Checkout) -> None:
    payload = {
        "action": "reopened",
        "repository": {"full_name": "pytorch/pytorch"},
        "pull_request": {"number": 7, "head": {"sha": OPENED, "repo": {"full_name": "a/pytorch"}}},
    }
    event = {"client_payload": {"event_type": "pull_request", "payload": payload}}
    checkout.run(plan, event).passed()
    assert checkout.outputs["run"] == "true"
    refused(checkout, checkout.run(plan, event, **REPORTING), "delivery_id")


def refused(checkout: Checkout, done: Any, *words: str) -> None:
    """Check that a step failed with one sentence, and passes nothing to other jobs."""
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1), done
    assert done.err.startswith("relay: ")
    assert done.err.isascii()
    assert len(done.err) < 400
    assert [word for word in words if word not in done.err] == []
    assert checkout.outputs == {}
    assert checkout.untouched()


@pytest.mark.parametrize("change", INVALID_EVENTS)
def test_an_invalid_event_is_refused_in_one_sentence(
    change: str, plan: str, checkout: Checkout
) -> None:
    name, place, value = INVALID_EVENTS[change]
    refused(checkout, checkout.run(plan, changed(name, place, value)))


@pytest.mark.parametrize("hostile", HOSTILE, ids=IDS)
def test_hostile_texts_do_not_change_the_outputs(
    hostile: str, plan: str, checkout: Checkout
) -> None:
    expected = checkout.run(plan, sent("opened")).passed().out, checkout.outputs
    event = sent("opened")
    for place in TEXTS:
        event = changed(event, place, hostile)
    done = checkout.run(plan, event).passed()
    assert (done.out, checkout.outputs, done.err) == (*expected, "")
    assert checkout.untouched()


@pytest.mark.parametrize("place", CHECKED, ids=lambda place: place[-1])
def test_hostile_values_of_used_fields_are_refused(
    place: tuple[str, ...], plan: str, checkout: Checkout
) -> None:
    for hostile in (HOSTILE[index] for index in (0, 1, 4, 7, 11, 12)):
        refused(checkout, checkout.run(plan, changed("opened", place, hostile)))


@pytest.mark.parametrize(
    ("event", "word"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[]", "a list"),
        (b"null", "nothing"),
        (b"[" * 200_000, "nested"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested"),
        (b'{"client_payload": ' + b"9" * 100_000 + b"}", "JSON"),
        (json.dumps({"a": "x" * (1 << 20)}).encode(), "bytes"),
    ],
    ids=["empty", "cut", "bytes", "list", "null", "deep", "deep objects", "digits", "huge"],
)
def test_an_event_file_without_an_event_is_refused_in_one_sentence(
    event: bytes, word: str, plan: str, checkout: Checkout
) -> None:
    refused(checkout, checkout.run(plan, event), word)


def test_a_missing_event_file_is_refused_in_one_sentence(
    plan: str, checkout: Checkout, tmp_path: Path
) -> None:
    missing = str(tmp_path / "none")
    refused(checkout, checkout.run(plan, {}, GITHUB_EVENT_PATH=missing), "GITHUB_EVENT_PATH")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"RELAY_LEVEL": "L5"}, ["RELAY_LEVEL", "'L5'", "L1, L2, L3, L4"]),
        ({"RELAY_PYTORCH": "wheel"}, ["RELAY_PYTORCH", "'wheel'", "source or nightly"]),
        ({**REPORTING, "RELAY_PYTORCH": "nightly"}, ["RELAY_PYTORCH", "L2", "source"]),
        ({"RELAY_LEVEL": "L2"}, ["RELAY_CALLBACK", "relay.md"]),
        ({"RELAY_LEVEL": "L3", "RELAY_CALLBACK": "http://relay.invalid"}, ["RELAY_CALLBACK"]),
    ],
)
def test_an_invalid_variable_is_named(
    variables: dict[str, str], words: list[str], plan: str, checkout: Checkout
) -> None:
    refused(checkout, checkout.run(plan, sent("opened"), **variables), *words)


def test_the_nightly_wheel_can_be_tested_without_reports(plan: str, checkout: Checkout) -> None:
    checkout.run(plan, sent("opened"), RELAY_PYTORCH="nightly").passed()
    assert checkout.outputs["pytorch"] == "nightly"
