"""The questions of `torchsmith new` on a terminal: a name, a purpose, and more on request."""

from __future__ import annotations

from typing import Any

import questionary

from torchsmith import catalog
from torchsmith.commands.prompts import ask, below, columns, fitted, text, validated
from torchsmith.question import Question

NAMED = 21
"""Width of the column with the names of features."""


class Interview:
    """Asks for the name, the preset and the features, and on request for all other answers.

    Attributes:
        answers: The answers that the user gave, by question.
    """

    def __init__(self) -> None:
        """Start without answers."""
        self.answers: dict[str, Any] = {}
        self._wants_more: bool | None = None

    def __call__(self, question: Question, answer: Any) -> Any:
        """Return the user's answer to a question, or the offered one.

        Raises:
            KeyboardInterrupt: The user pressed Ctrl-C.
        """
        if question.name not in catalog.questions():  # of another template
            return ask(question, answer)
        asks = {"backend_name": _name, "preset": _purpose, "features": _pick}
        if question.name not in asks and self._wants_more is None:
            message = "More options (vendor, licence, element types, device, CI)?"
            self._wants_more = questionary.confirm(fitted(message), default=False).unsafe_ask()
        if question.name not in asks and not self._wants_more:
            return answer
        found = asks.get(question.name, ask)(question, answer)
        if question.name in asks or found != answer:
            self.answers[question.name] = found
        return found


def folder(name: str) -> str:
    """Ask for the folder of the backend ``name``."""
    offered = f"torch-{name.replace('_', '-')}"
    return text("Folder:", offered, lambda typed: bool(typed.strip()) or "name a folder").strip()


def name(offered: str) -> str:
    """Ask for the name of a backend, before the template is read."""
    message = 'Device name, as in torch.device("foo"):'

    def problem(typed: str) -> bool | str:
        return catalog.name_problem(typed) or True

    return _named(message, offered, problem)


def _name(question: Question, answer: Any) -> Any:
    message = f"{question.rendered(question.row['help'])}:"
    return _named(message, str(answer), validated(question))


def _named(message: str, offered: str, problem: Any) -> str:
    """Ask for a name, and show the device, package and variables that it gives."""

    def shown(typed: str) -> str:
        return f'torch.device("{typed}"), package torch_{typed}, variables {typed.upper()}_...'

    return text(message, offered, problem, shown)


def _purpose(question: Question, answer: Any) -> Any:
    """Ask for a preset. Its size is beside it, or below on a narrow terminal."""
    wide = columns() >= 64
    choices = []
    for choice in question.choices:
        words, _, size = choice.title.partition(" (")
        size = size.rstrip(")")
        short, _, more = words.partition(", ")
        choices.append(
            questionary.Choice(
                f"{short:<13}  {size}" if wide and size else short,
                choice.value,
                disabled=choice.reason or None,
                description=below(more if wide else f"{more}; {size}".strip("; ")),
            )
        )
    default = next((each for each in choices if each.value == answer), None)
    return questionary.select("Purpose:", choices, default=default).unsafe_ask()


def _pick(question: Question, answer: Any) -> Any:
    """Ask for features, in groups with sizes; the help of the highlighted one is below."""
    rows, parts = catalog.features(), catalog.sizes()["parts"]
    offered = {choice.value: choice for choice in question.choices}
    choices: list[Any] = []
    group = ""
    for id, choice in offered.items():
        if id not in rows:
            choices.append(questionary.Choice(choice.title, id, checked=id in answer))
            continue
        row = rows[id]
        if row.group != group:
            group = row.group
            choices.append(questionary.Separator(group))
        title = _row(id, row.title, f"{parts[id]['lines']:,}" if id in parts else "")
        users = catalog.users(id)
        needed = f" (needed by {', '.join(users)})" if users else ""
        choices.append(
            questionary.Choice(
                title, id, checked=id in answer, description=below(f"{row.help}{needed}")
            )
        )
    asked = questionary.checkbox(
        "Features:",
        choices,
        validate=validated(question),
        instruction="(type to search)",
        use_search_filter=True,
        use_jk_keys=False,
    )
    return question.checked(asked.unsafe_ask())


def _row(id: str, title: str, lines: str) -> str:
    """Return a line of the list that fits the terminal."""
    wide = columns() >= NAMED + 30 + 8
    return f"{id:<{NAMED}}{title:<30}{lines:>8}" if wide else f"{id} {lines}"
