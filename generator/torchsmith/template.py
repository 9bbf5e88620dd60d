"""Where the template is: around this package in a checkout, within it where it is installed."""

from __future__ import annotations

from pathlib import Path

_INSTALLED = Path(__file__).parent / "_template"
CHECKOUT = None if _INSTALLED.is_dir() else Path(__file__).parents[2]
"""The root of the repository, or None if the package was installed from a wheel."""

TEMPLATE = CHECKOUT or _INSTALLED
"""The folder that copier renders: copier.yml, generator/catalog and template."""

CATALOG = TEMPLATE / "generator" / "catalog"
