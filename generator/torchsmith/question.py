"""A question of a template, which parses and validates answers as copier does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jinja2
import yaml

from torchsmith.configuration import SafeLoader
from torchsmith.errors import InputError, did_you_mean

TRUE = ("y", "yes", "t", "true", "on")
FALSE = ("n", "no", "f", "false", "off", "~", "null", "none", "")


class Choice(NamedTuple):
    """A choice of a question; ``reason`` says why it is disabled, or is ""."""

    title: str
    value: Any
    reason: str


@dataclass(frozen=True)
class Question:
    """A question, rendered with the answers to the questions before it.

    Attributes:
        name: Its name.
        row: Its entry in copier.yml.
        rendered: Renders a value of the entry; keyword arguments add variables.
    """

    name: str
    row: Mapping[str, Any]
    rendered: Callable[..., Any]

    @property
    def asked(self) -> bool:
        """Whether the user answers it; otherwise its value is computed."""
        return truth(self.rendered(self.row.get("when", True)))

    @property
    def multiple(self) -> bool:
        """Whether its answer is a list."""
        return bool(self.row.get("multiselect"))

    @cached_property
    def kind(self) -> str:
        """The type of its answers."""
        of_default = type(self.row.get("default")).__name__
        kind = self.rendered(self.row.get("type", "")) or (
            of_default if of_default in _CASTS else "yaml"
        )
        if kind not in _CASTS:
            raise InputError(
                f"the template's question {self.name} has no type that is known: {kind}"
            )
        return str(kind)

    @cached_property
    def choices(self) -> list[Choice]:
        """The answers that it offers; empty if any answer is valid."""
        offered = self.row.get("choices", [])
        if isinstance(offered, str):
            offered = yaml.load(self.rendered(offered), SafeLoader) or []
        pairs = offered.items() if isinstance(offered, dict) else offered
        found = []
        for pair in pairs:
            title, value = pair if isinstance(pair, tuple | list) else (pair, pair)
            reason = ""
            if isinstance(value, dict):
                reason, value = self.rendered(value.get("validator", "")), value["value"]
            value = self._cast(self.rendered(value))
            found.append(Choice(str(self.rendered(title)), value, reason))
        return found

    def parsed(self, answer: Any) -> Any:
        """Return an answer as a value of the question's type.

        Raises:
            InputError: It is not of the question's type, or none of its choices.
        """
        if not self.multiple:
            return self._chosen(answer)
        if isinstance(answer, str):
            answer = yaml.load(answer, yaml.BaseLoader)  # items are parsed one by one
        if not isinstance(answer, list):
            raise InputError(f"{self.name} is a list, not '{answer}'")
        wanted = [self._chosen(item) for item in answer]
        return [choice.value for choice in self.choices if choice.value in wanted]

    def checked(self, answer: Any) -> Any:
        """Return a parsed answer that the question's validator accepts.

        Raises:
            InputError: The validator rejects it; or as for :meth:`parsed`.
        """
        answer = self.parsed(answer)
        try:
            problem = self.rendered(self.row.get("validator", ""), **{self.name: answer})
        except jinja2.TemplateError as error:
            problem = str(error)
        if words := problem.split():
            raise InputError(" ".join(words))
        return answer

    def takes(self, answer: Any) -> bool:
        """Whether an answer is valid."""
        try:
            self.checked(answer)
        except InputError:
            return False
        return True

    def _chosen(self, answer: Any) -> Any:
        answer = self._cast(answer)
        for choice in self.choices:
            if choice.value == answer and not choice.reason:
                return answer
        if not self.choices:
            return answer
        reasons = [choice.reason for choice in self.choices if choice.value == answer]
        known = [str(choice.value) for choice in self.choices if not choice.reason]
        raise InputError(
            f"{self.name} cannot be '{answer}': {reasons[0]}" if reasons else
            f"there is no {self.name} '{answer}': choose from {', '.join(known)}"
            f"{did_you_mean(str(answer), known)}"
        )  # fmt: skip

    def _cast(self, answer: Any) -> Any:
        try:
            return _CASTS[self.kind](answer)
        except (TypeError, ValueError, yaml.YAMLError) as error:
            raise InputError(f"{self.name} is of type {self.kind}, not '{answer}'") from error


def truth(value: Any) -> bool:
    """Return the truth of a rendered condition, which may be a word or a number."""
    word = str(value).strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    try:
        return bool(float(word))
    except ValueError:
        return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise ValueError(value)
    return str(value)


def _some(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that parses strings and returns other values unchanged."""
    return lambda value: function(value) if isinstance(value, str) else value


_CASTS: Mapping[str, Callable[[Any], Any]] = {
    "bool": truth,
    "float": float,
    "int": int,
    "json": _some(json.loads),
    "path": str,
    "str": _text,
    "yaml": _some(partial(yaml.load, Loader=SafeLoader)),
}
