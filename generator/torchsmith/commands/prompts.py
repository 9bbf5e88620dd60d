"""The questions of a template, asked at the terminal."""

from __future__ import annotations

from typing import Any

import questionary

from torchsmith.errors import InputError
from torchsmith.question import Question


def ask(question: Question, answer: Any) -> Any:
    """Ask the user a question.

    Args:
        question: What is asked.
        answer: What is offered as the answer.

    Raises:
        KeyboardInterrupt: The user wants no more of it.
    """

    def problem(typed: Any) -> bool | str:
        try:
            question.checked(typed)
        except InputError as error:
            return str(error)
        return True

    message = f"{question.rendered(question.row.get('help', '')) or question.name}:"
    offered = [
        questionary.Choice(
            choice.title,
            choice.value,
            disabled=choice.reason or None,
            checked=question.multiple and choice.value in (answer or []),
        )
        for choice in question.choices
    ]
    if question.multiple:
        asked = questionary.checkbox(message, offered, validate=problem)
    elif offered:
        default = next((each for each in offered if each.value == answer), None)
        asked = questionary.select(message, offered, default=default)
    elif question.kind == "bool":
        asked = questionary.confirm(message, default=bool(answer))
    else:
        text = "" if answer is None else str(answer)
        asked = questionary.text(message, default=text, validate=problem)
    return question.checked(asked.unsafe_ask())
