"""The payloads of PyTorch's relay: GitHub's webhooks, with the keys that tests read."""

from __future__ import annotations

from typing import Any

OPENED = "3f1c9a7be0d24558a6c1f0d7e9b8a2c4d5e6f701"
SYNCHRONIZED = "90ab12cd34ef56789012ab34cd56ef7890123456"
PUSHED = "5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed"
TAG = "refs/tags/ciflow/trunk/191234"


def sent(name: str) -> dict[str, Any]:
    """Return an event as GitHub writes it to a file."""
    kind, payload = {
        "opened": ("pull_request", _request("opened", OPENED)),
        "synchronize": ("pull_request", _request("synchronize", SYNCHRONIZED)),
        "closed": ("pull_request", _request("closed", SYNCHRONIZED)),
        "push": ("push", _push("refs/heads/main", PUSHED)),
        "push_tag": ("push", _push(TAG, PUSHED)),
        "push_deleted": ("push", _push(TAG, "0" * 40)),
    }[name]
    delivery = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
    inner = {"event_type": kind, "delivery_id": delivery, "payload": payload}
    return {"action": kind, "branch": "main", "client_payload": inner}


def _request(action: str, sha: str) -> dict[str, Any]:
    return {
        "action": action,
        "number": 191234,
        "pull_request": {
            "number": 191234,
            "title": 'Let `torch.equal` compare "views" & tensors of 0 dims; $HOME is not read',
            "body": "Fixes #191000\n\n```sh\npython test/test_torch.py -k equal\n```\n",
            "user": {"login": "somebody"},
            "labels": [{"name": "open source"}, {"name": "ciflow/crcr/foo"}],
            "head": {
                "label": "somebody:fix/equal",
                "ref": "fix/equal",
                "sha": sha,
                "repo": {"full_name": "somebody/pytorch"},
            },
            "base": {"ref": "main", "repo": {"full_name": "pytorch/pytorch"}},
        },
        "repository": {"full_name": "pytorch/pytorch"},
        "sender": {"login": "somebody"},
    }


def _push(ref: str, after: str) -> dict[str, Any]:
    return {
        "ref": ref,
        "after": after,
        "deleted": after == "0" * 40,
        "repository": {"full_name": "pytorch/pytorch"},
        "sender": {"login": "pytorchmergebot"},
    }
