"""The answers that `torchsmith new` remembers for the next project, in copier's own settings.

Copier also reads the defaults of questions from there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from platformdirs import user_config_path

from torchsmith import catalog
from torchsmith.errors import InputError

QUESTIONS = ("vendor", "license")
"""The answers that all projects of a vendor share."""


def recall() -> dict[str, str]:
    """Return the remembered answers, without those that the template would reject.

    Raises:
        InputError: The settings are invalid.
    """
    file = _file()
    try:
        found = (yaml.safe_load(file.read_text("utf-8")) or {}).get("defaults") or {}
        if not isinstance(found, dict):
            raise TypeError("defaults has no lines like 'key: value'")
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, AttributeError, TypeError, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"copier's settings in {file} are broken ({reason}): correct them"
        ) from error
    return {key: found[key] for key in QUESTIONS if _fits(key, found.get(key))}


def remember(answers: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Write answers into copier's settings. If the user edited these, return what to add.

    Args:
        answers: What the user typed.
        known: What is remembered already.

    Returns:
        A message on the result, or "" if there was nothing to do.
    """
    standard = catalog.load("questions")
    new = {
        key: answers[key]
        for key in QUESTIONS
        if key in answers and answers[key] != known.get(key, standard[key]["default"])
    }
    if not new:
        return ""
    file = _file().resolve()
    lines = _dump({"defaults": new})
    try:
        text = file.read_text("utf-8") if file.exists() else ""
        before = yaml.safe_load(text) or {}
        if text not in ("", _dump(before)):  # comments, or another formatting
            return f"To use this as the default of your next project, add to {file}:\n\n{lines}"
        wanted = {**before, "defaults": {**(before.get("defaults") or {}), **new}}
        file.parent.mkdir(parents=True, exist_ok=True)
        written = file.with_name(f".{file.name}.new")
        written.write_text(_dump(wanted), "utf-8")
        written.replace(file)
    except (OSError, UnicodeDecodeError) as error:
        return f"Not remembered, as {file} cannot be read or written ({error})"
    return f"Remembered for your next project, in {file}: {' and '.join(new)}"


def _dump(settings: Mapping[str, Any]) -> str:
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)


def _file() -> Path:
    named = os.environ.get("COPIER_SETTINGS_PATH")
    return Path(named) if named else user_config_path("copier", appauthor=False) / "settings.yml"


def _fits(question: str, answer: Any) -> bool:
    choices = catalog.choices(question)
    if choices:
        return answer in choices
    return isinstance(answer, str) and answer.isprintable() and answer == answer.strip() != ""
