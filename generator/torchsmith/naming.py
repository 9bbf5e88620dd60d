"""Whether a backend can have a name: the template's own check, without a render."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2
from jinja2_ansible_filters import AnsibleCoreFiltersExtension

from torchsmith import catalog
from torchsmith.template import CATALOG


def problem(name: str) -> str:
    """Return one sentence that says what is wrong with a name and what to try, or nothing."""
    return _check().render(name=name)


@cache
def _check() -> jinja2.Template:
    options: dict[str, Any] = {
        **catalog.load("settings")["_envops"],
        "undefined": jinja2.StrictUndefined,
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(CATALOG),
        extensions=[AnsibleCoreFiltersExtension],
        **options,
    )
    reserved = catalog.load("reserved")
    environment.globals.update({name: table["default"] for name, table in reserved.items()})
    return environment.from_string(
        "#% import 'names.jinja' as names\n{= names.name_problem(name) | trim =}"
    )
