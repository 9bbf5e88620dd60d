"""Reads what the build has packed, as page/data.js does."""

from __future__ import annotations

import json
import re
from typing import Any

from maintenance.site import build


def data(letters: str) -> bytes:
    """Return the bytes that printable letters stand for."""
    values = (build.LETTERS.index(letter) for letter in letters)
    bits = "".join(
        f"{value:06b}" if value < build.SHORT else f"{value + build.SHORT:07b}" for value in values
    )
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8))


def contents(text: str) -> Any:
    """Return what a shortened text describes."""
    words, text = text.split(build.END, 1)
    known = words.split(" ")
    text = re.sub(r"[^\0-\x7f]", lambda found: known[ord(found[0]) - build.FIRST], text)
    text = re.sub(f"{build.CAPITALS}([a-z]+)", lambda pair: pair[1].upper(), text)
    text = re.sub(f"{build.CAPITAL}(.)", lambda pair: pair[1].upper(), text)
    return json.loads(text.replace("\n", "\\n"))
