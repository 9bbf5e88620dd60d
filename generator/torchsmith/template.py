"""The template's location: around this package in a checkout, inside it if installed."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from torchsmith import __version__

REPOSITORY = "gh:example/torchsmith"
"""The template's address in copier's form; projects of a release are updated from it."""

TAG = f"v{__version__}"
"""The version of the template that this package has."""

_INSTALLED = Path(__file__).parent / "_template"
CHECKOUT = None if _INSTALLED.is_dir() else Path(__file__).parents[2]
"""The root of the repository, or None if the package was installed from a wheel."""

TEMPLATE = CHECKOUT or _INSTALLED
"""The folder that copier renders: copier.yml, generator/catalog and template."""

CATALOG = TEMPLATE / "generator" / "catalog"


@cache
def is_release() -> bool:
    """Whether the package was installed from a release, so that its template is that of TAG.

    An installation from a repository or a folder has the same version number but other files.
    """
    try:
        origin = json.loads(distribution("torchsmith").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return False
    return CHECKOUT is None and not {"vcs_info", "dir_info"} & set(origin)
