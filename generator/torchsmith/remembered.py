"""What `torchsmith new` remembers for the next project, in copier's own settings.

Copier takes the defaults of questions from there too.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import copier
import yaml
from copier.errors import MissingSettingsWarning, SettingsError
from platformdirs import user_config_path

from torchsmith import catalog
from torchsmith.errors import InputError

QUESTIONS = ("vendor", "license")
"""What is the same for all projects of a vendor."""


def recall() -> dict[str, str]:
    """Return the answers that are remembered; one that the template would refuse is left out.

    Raises:
        InputError: The settings are broken.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MissingSettingsWarning)
            found = copier.load_settings().defaults
    except (SettingsError, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"copier's settings in {_file()} are broken ({reason}): correct them"
        ) from error
    return {key: found[key] for key in QUESTIONS if _fits(key, found.get(key))}


def remember(answers: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Write answers into copier's settings, and leave all else in them as it is.

    Args:
        answers: What the user typed.
        known: What is remembered already.

    Returns:
        A sentence on what was done, or nothing if there was nothing to do.
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
    try:
        text = file.read_text("utf-8") if file.exists() else ""
        changed = _with_defaults(text, new)
        if changed is None:
            return f"Not remembered, as {file} is laid out in an unusual way: {', '.join(new)}"
        file.parent.mkdir(parents=True, exist_ok=True)
        written = file.with_name(f".{file.name}.new")
        written.write_text(changed, "utf-8")
        written.replace(file)
    except (OSError, UnicodeDecodeError) as error:
        return f"Not remembered, as {file} cannot be read or written ({error})"
    return f"Remembered for your next project, in {file}: {' and '.join(new)}"


def _file() -> Path:
    named = os.environ.get("COPIER_SETTINGS_PATH")
    return Path(named) if named else user_config_path("copier", appauthor=False) / "settings.yml"


def _fits(question: str, answer: Any) -> bool:
    choices = catalog.choices(question)
    if choices:
        return answer in choices
    return isinstance(answer, str) and answer.isprintable() and answer == answer.strip() != ""


def _with_defaults(text: str, new: Mapping[str, Any]) -> str | None:
    """Return settings with other defaults, or None where they cannot be put among the lines."""
    before = yaml.safe_load(text) or {}
    changed = text
    for key, value in reversed(list(new.items())):
        changed = _with_default(changed, key, json.dumps(value, ensure_ascii=False))
    wanted = {**before, "defaults": {**(before.get("defaults") or {}), **new}}
    try:
        return changed if yaml.safe_load(changed) == wanted else None
    except yaml.YAMLError:
        return None


def _with_default(text: str, key: str, value: str) -> str:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    tables = root.value if isinstance(root, yaml.MappingNode) else []
    table = next((node for name, node in tables if name.value == "defaults"), None)
    if not isinstance(table, yaml.MappingNode):
        return f"defaults:\n  {key}: {value}\n{text}"
    for name, node in table.value:
        if name.value == key:
            return text[: node.start_mark.index] + value + text[node.end_mark.index :]
    start = table.start_mark.index
    if table.flow_style:
        return f"{text[: start + 1]}{key}: {value}, {text[start + 1 :]}"
    return f"{text[:start]}{key}: {value}\n{' ' * table.start_mark.column}{text[start:]}"
