"""Errors caused by the user's input or by the system, as sentences."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from difflib import get_close_matches


class InputError(Exception):
    """A mistake in the user's input; its text is one sentence."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the choice closest to ``word`` in any case, or nothing."""
    by_lower = {choice.lower(): choice for choice in choices}
    close = get_close_matches(word.lower(), by_lower, n=1)
    return f"; did you mean '{by_lower[close[0]]}'?" if close else ""


def require_choice(what: str, word: str, choices: Iterable[str], offer: str = "") -> None:
    """Refuse a word that is none of the choices.

    Args:
        what: What is chosen, such as "feature".
        word: The given word.
        choices: The valid words.
        offer: Text that lists the choices; may be empty.

    Raises:
        InputError: The word is none of them.
    """
    known = list(choices)
    if word not in known:
        raise InputError(
            f"there is no {what} '{word}'{offer and ': '}{offer}{did_you_mean(word, known)}"
        )


def unreachable(source: str, reason: str, hint: str) -> InputError:
    """Return the error that a template cannot be reached."""
    return InputError(f"the template '{source}' cannot be reached: {reason}; {hint}")


def refusal(error: OSError) -> str:
    """Return one sentence on an error of the operating system, with a fix."""
    file = f" '{error.filename}'" if error.filename else ""
    fixes = {
        errno.ENOSPC: "free some space, then try again",
        errno.EDQUOT: "free some space, then try again",
        errno.EMFILE: "raise `ulimit -n`, then try again",
    }
    fix = fixes.get(error.errno or 0, "use another path, or fix its permissions")
    return f"the system refuses{file} ({error.strerror or error}): {fix}"


def undecodable(error: UnicodeDecodeError) -> str:
    """Return one sentence on text that is not UTF-8; it quotes the line."""
    start = error.object.rfind(b"\n", 0, error.start) + 1
    line = bytes(error.object[start : error.end + 20]).partition(b"\n")[0]
    return f"a file is not UTF-8, where it says {str(line)[1:]}: save it as UTF-8"
