"""Explains a name that ``torch.<name>`` does not have."""

from __future__ import annotations

from ._build import NAME
from ._features import FEATURES


def explain(module: str, name: str) -> str:
    """Return the text of the AttributeError for ``name``.

    For a name that belongs to a feature which was left out when the package was generated, the
    text says which feature that is and how to add it.
    """
    for feature, row in FEATURES.items():
        if name in row.provides and not row.enabled:
            return (
                f"{NAME} was generated without {feature}, which brings {name}; add it with: "
                f"{command_to_add(feature)}"
            )
    return f"module {module!r} has no attribute {name!r}"


def command_to_add(feature: str) -> str:
    """Return the command that adds ``feature`` and keeps the features that are there."""
    wanted = [name for name, row in FEATURES.items() if row.enabled or name == feature]
    return (
        "copier update --vcs-ref=:current: --data preset=custom "
        f"--data 'features=[{', '.join(wanted)}]'"
    )
