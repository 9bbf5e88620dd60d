"""The questions of a template, asked at the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable
from typing import Any

import questionary

from torchsmith.errors import InputError
from torchsmith.question import Question


def validated(question: Question) -> Callable[[Any], bool | str]:
    """Return a check of the user's input, which returns True or an error message."""

    def problem(typed: Any) -> bool | str:
        try:
            question.checked(typed)
        except InputError as error:
            return str(error)
        return True

    return problem


def fitted(text: str) -> str:
    """Return text in lines that fit the terminal, beside the mark of a question."""
    return textwrap.fill(text, shutil.get_terminal_size().columns - 4, subsequent_indent="  ")


def ask(question: Question, answer: Any) -> Any:
    """Ask the user a question.

    Args:
        question: The question.
        answer: The default answer.

    Raises:
        KeyboardInterrupt: The user pressed Ctrl-C.
    """
    problem = validated(question)
    message = fitted(f"{question.rendered(question.row.get('help', '')) or question.name}:")
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
