"""The answers that turn features of a project on or off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchsmith import catalog
from torchsmith.errors import InputError, require_choice
from torchsmith.project import Project


def adding(project: Project, features: Sequence[str]) -> dict[str, Any]:
    """Return the answers that add ``features``; none if all are on.

    Raises:
        InputError: There is no such feature.
    """
    known = list(dict.fromkeys([*catalog.features(), *project.features]))
    for feature in features:
        require_choice("feature", feature, known, f"choose from {', '.join(known)}")
    if set(features) <= set(project.features):
        return {}
    return _answers({*_chosen(project), *features})


def removing(project: Project, features: Sequence[str]) -> dict[str, Any]:
    """Return the answers that remove ``features``; none if all are off.

    Raises:
        InputError: There is no such feature, or one that stays requires it.
    """
    known = list(dict.fromkeys([*catalog.features(), *project.features]))
    for feature in features:
        if feature == project.answers.get("device"):
            raise InputError(
                f"'{feature}' cannot go while it is the device that is built: "
                "torchsmith update --to current -d device=simulator"
            )
        offer = f"this project has {', '.join(project.features) or 'none'}"
        require_choice("feature", feature, known, offer)
        users = [
            id
            for id in project.features
            if feature in project.parts[id].requires and id not in features
        ]
        if feature in project.features and users:
            raise InputError(
                f"'{feature}' cannot go without {' and '.join(users)}, which needs it: "
                f"torchsmith remove {' '.join([feature, *users])}"
            )
    if not set(features) & set(project.features):
        return {}
    return _answers(_chosen(project) - set(features))


def _chosen(project: Project) -> set[str]:
    """What was asked for, without what came along."""
    custom = project.answers.get("preset") == "custom"
    return set(project.answers.get("features", ()) if custom else project.features)


def _answers(features: set[str]) -> dict[str, Any]:
    return {"preset": "custom", "features": sorted(features)}
