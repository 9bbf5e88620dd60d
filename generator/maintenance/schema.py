"""The JSON schema of the answers, with which editors complete and check answers files.

`python -m maintenance.schema` writes it into the template, so that each project has it.
"""

from __future__ import annotations

import json
from typing import Any

from torchsmith import catalog
from torchsmith.template import TEMPLATE

SCHEMA = TEMPLATE / "template" / ".torchsmith.schema.json"

_ONE_LINE = r"^\S(.*\S)?$"
_BACKEND_NAME = {"pattern": "^[a-z]+(_[a-z]+)*$", "maxLength": 50}


def schema() -> dict[str, Any]:
    """Return the schema; it has no list of reserved names, which only the template checks."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Answers to the questions of torchsmith",
        "type": "object",
        "properties": {name: _question(name) for name in catalog.questions()},
        "patternProperties": {"^_": {"description": "Written by copier"}},
        "additionalProperties": False,
        "if": {"required": ["features", "preset"]},
        "then": {"properties": {"preset": {"const": "custom"}}},
    }


def _question(name: str) -> dict[str, Any]:
    asked = catalog.load("questions")[name]
    found: dict[str, Any] = {"description": asked["help"]}
    if isinstance(asked["default"], str) and "{=" not in asked["default"]:
        found["default"] = asked["default"]
    if name in catalog.lists():
        return {**found, "type": "array", "uniqueItems": True, "items": _one_of(_described(name))}
    if choices := asked.get("choices"):
        return {
            **found,
            **_one_of(
                # Without the size of a preset, which changes with each release.
                {value: title.partition(" (")[0] for title, value in choices.items()}
            ),
        }
    return {
        **found,
        "type": "string",
        **(_BACKEND_NAME if name == "backend_name" else {"pattern": _ONE_LINE}),
    }


def _described(name: str) -> dict[str, str]:
    if name == "features":
        return {row.id: f"{row.title}: {row.help}" for row in catalog.features().values()}
    rows = catalog.dtypes()
    return {id: row["title"] for id, row in rows.items()}


def _one_of(choices: dict[str, str]) -> dict[str, Any]:
    return {"oneOf": [{"const": id, "description": text} for id, text in choices.items()]}


def text() -> str:
    """Return the file's text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text(), "utf-8")
