"""The JSON schema with which editors check answers files: valid and invalid files."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from maintenance.schema import SCHEMA, schema, text
from rendering import HOSTILE, Renderer, answers_in

WRONG: dict[str, dict[str, Any]] = {
    "an unknown question": {"color": "red"},
    "an unknown choice": {"license": "gpl"},
    "a choice in capitals": {"preset": "Full"},
    "a list for a word": {"device": ["opencl"]},
    "a word for a list": {"dtypes": "bool"},
    "an unknown feature": {"features": ["ampp"]},
    "a feature twice": {"features": ["amp", "amp"]},
    "features beside a preset": {"preset": "full", "features": ["amp"]},
    "a name in capitals": {"backend_name": "Foo"},
    "a name with a digit": {"backend_name": "foo2"},
    "a long name": {"backend_name": "x" * 51},
    "two lines": {"vendor": "a\nb"},
    "an empty text": {"description": ""},
    "a number": {"display_name": 3},
}


@pytest.mark.parametrize(
    "given",
    [
        {"features": ["editors"]},
        HOSTILE | {"features": ["editors", "amp"]},
        {"preset": "full", "ci_provider": "gitlab"},
        {"features": ["opencl", "amp", "editors"], "device": "opencl"},
    ],
    ids=["alone", "hostile", "full", "custom"],
)
def test_the_answers_file_names_a_schema_that_it_fits(
    given: dict[str, Any], render: Renderer
) -> None:
    project = render(**given)
    first, *_ = (project / ".copier-answers.yml").read_text("utf-8").splitlines()
    marker, _, place = first.partition("$schema=")
    assert marker == "# yaml-language-server: "
    beside = json.loads((project / place).read_text("utf-8"))
    jsonschema.Draft7Validator.check_schema(beside)
    answers = answers_in(project)
    jsonschema.validate(answers, beside)


@pytest.mark.parametrize("answers", WRONG.values(), ids=WRONG)
def test_invalid_answers_do_not_fit_the_schema(answers: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(answers, schema())


def test_the_schema_of_the_template_is_current() -> None:
    """If it is stale, run `make docs`."""
    assert SCHEMA.read_text("utf-8") == text()
