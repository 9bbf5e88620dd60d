"""Jinja as copier sets it up for the template, for what is rendered without copier."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2_ansible_filters import AnsibleCoreFiltersExtension

from torchsmith import catalog


@cache
def environment(folder: Path) -> jinja2.Environment:
    """Return the environment whose files are those of ``folder``."""
    options: dict[str, Any] = {
        **catalog.load("settings")["_envops"],
        "undefined": jinja2.StrictUndefined,
    }
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), extensions=[AnsibleCoreFiltersExtension], **options
    )
