"""The wheel's entry points: the project's own, and those of its features.

A feature that another library finds by itself has a file `entry_points.txt` in its folder of the package, in the form of
those of installed packages. scikit-build-core calls `dynamic_metadata` while it writes the wheel's metadata.
"""

from collections.abc import Mapping
from configparser import ConfigParser
from pathlib import Path
from typing import Any

PACKAGES = Path(__file__).parent.parent / "python"


def dynamic_metadata(
    field: str, settings: Mapping[str, Any], project: Mapping[str, Any] | None = None
) -> dict[str, dict[str, str]]:
    """The entry points by their groups: those listed in the settings, and each feature's."""
    groups = {group: dict(points) for group, points in settings.get("groups", {}).items()}
    for file in sorted(PACKAGES.glob("*/*/entry_points.txt")):
        # Names of entry points may be in capital letters and have colons in them.
        parser = ConfigParser(delimiters=("=",), interpolation=None)
        parser.optionxform = str  # type: ignore[method-assign,assignment]
        parser.read(file, encoding="utf-8")
        for group in parser.sections():
            groups.setdefault(group, {}).update(parser[group])
    return groups
