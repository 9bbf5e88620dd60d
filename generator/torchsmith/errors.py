"""What goes wrong by the user's hand."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(Exception):
    """A mistake in what the user gave; its text is one sentence."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the choice that is closest to ``word``, or nothing."""
    close = get_close_matches(word, list(choices), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""
