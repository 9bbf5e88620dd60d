"""Jinja as copier sets it up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import jinja2
from jinja2.bccache import Bucket
from jinja2.sandbox import SandboxedEnvironment
from jinja2_ansible_filters import AnsibleCoreFiltersExtension

from torchsmith.configuration import documents
from torchsmith.errors import InputError, did_you_mean
from torchsmith.template import CATALOG, TEMPLATE


class _Codes(jinja2.BytecodeCache):
    """Keeps compiled templates in memory: versions of a template have most files in common."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code
        self._codes[bucket.key, bucket.checksum] = bucket.code


@cache
def _codes(options: str) -> _Codes:
    """Return the compiled templates of environments with the same options."""
    return _Codes()


def environment(loader: jinja2.BaseLoader, options: Mapping[str, Any]) -> SandboxedEnvironment:
    """Return an environment with a template's options, from its `_envops`.

    Raises:
        InputError: An option is unknown.
    """
    options = {"keep_trailing_newline": True, **options}
    undefined = str(options.pop("undefined", "jinja2.Undefined")).removeprefix("jinja2.")
    if undefined not in ("Undefined", "StrictUndefined"):
        raise InputError(f"_envops of the template has no class of jinja2's: {undefined}")
    try:
        made = SandboxedEnvironment(
            loader=loader,
            extensions=[AnsibleCoreFiltersExtension],
            undefined=getattr(jinja2, undefined),
            cache_size=-1,
            bytecode_cache=_codes(repr(sorted(options.items()))),
            **options,
        )
    except TypeError as error:  # an option is no argument of the class
        raise InputError(f"_envops of the template is not for jinja2: {error}") from error
    made.globals["did_you_mean"] = did_you_mean  # copier does not have it
    return made


@cache
def own(folder: Path) -> SandboxedEnvironment:
    """Return an environment with this template's options that loads files from ``folder``."""
    (settings,) = documents(CATALOG / "settings.yml", TEMPLATE)
    return environment(jinja2.FileSystemLoader(folder), settings["_envops"])
