"""The questions of a template, asked at the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable
from typing import Any

import questionary
from prompt_toolkit.application import get_app

from torchsmith.errors import InputError
from torchsmith.question import Question


def validated(question: Question) -> Callable[[Any], bool | str]:
    """Return a check of the user's input, which returns True or an error message."""

    def problem(typed: Any) -> bool | str:
        try:
            question.checked(typed)
        except InputError as error:
            return fitted(str(error))
        return True

    return problem


def text(
    message: str,
    default: str,
    problem: Callable[[str], bool | str],
    shown: Callable[[str], str] = lambda typed: "",
) -> str:
    """Ask for text.

    Args:
        message: The question.
        default: The offered answer.
        problem: Returns True for a valid answer, or an error message.
        shown: Returns what to show below a valid answer.
    """

    def below() -> str:
        typed = get_app().current_buffer.text
        found = problem(typed)
        return fitted(shown(typed) if found is True else str(found))

    # The error message has one line, which a terminal would cut: the reason is below it.
    def short(typed: str) -> bool | str:
        return problem(typed) is True or "Not accepted:"

    asked = questionary.text(fitted(message), default=default, validate=short, bottom_toolbar=below)
    return str(asked.unsafe_ask())


def fitted(text: str) -> str:
    """Return text in lines that fit the terminal, beside the mark of a question."""
    return textwrap.fill(text, shutil.get_terminal_size().columns - 4, subsequent_indent="  ")


def columns() -> int:
    """Return how wide a choice may be, beside its pointer and mark."""
    return shutil.get_terminal_size().columns - 6


def below(text: str) -> str:
    """Return the description of a choice in lines that fit the terminal."""
    return textwrap.fill(text, columns() - 12, subsequent_indent="  ")


def _choice(title: str, **more: Any) -> questionary.Choice:
    """Return a choice; a title "NAME: DESCRIPTION" that does not fit is divided."""
    if len(title) <= columns():
        return questionary.Choice(title, **more)
    return questionary.Choice(title.partition(": ")[0], description=below(title), **more)


def ask(question: Question, answer: Any) -> Any:
    """Ask the user a question.

    Args:
        question: The question.
        answer: The default answer.

    Raises:
        KeyboardInterrupt: The user pressed Ctrl-C.
    """
    message = fitted(f"{question.rendered(question.row.get('help', '')) or question.name}:")
    offered = [
        _choice(
            choice.title,
            value=choice.value,
            disabled=choice.reason or None,
            checked=question.multiple and choice.value in (answer or []),
        )
        for choice in question.choices
    ]
    hint = "(space to select, enter to end)" if question.multiple else "(Use arrow keys)"
    if offered and len(message.rpartition("\n")[2]) + len(hint) >= columns():
        message += "\n "  # the hint and later the answer are on a line of their own
    if question.multiple:
        asked = questionary.checkbox(
            message, offered, validate=validated(question), instruction=hint
        )
    elif offered:
        default = next((each for each in offered if each.value == answer), None)
        asked = questionary.select(message, offered, default=default)
    elif question.kind == "bool":
        asked = questionary.confirm(message, default=bool(answer))
    else:
        known = "" if answer is None else str(answer)
        return question.checked(text(message, known, validated(question)))
    return question.checked(asked.unsafe_ask())
