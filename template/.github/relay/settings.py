"""The settings of the relay, from this repository's variables of GitHub Actions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

LEVELS = ("L1", "L2", "L3", "L4")


class SettingsError(Exception):
    """A variable is wrong or missing; the text names it and the fix."""


@dataclass(frozen=True)
class Settings:
    """The settings of the relay for this repository.

    Attributes:
        level: The level of this repository in PyTorch's allowlist.
        pytorch: ``source`` for the commit itself, ``nightly`` for the wheel of the night before.
        label: Only pull requests with this label are tested; empty for all.
        callback: The address for results, from L2 on.
    """

    level: str
    pytorch: str
    label: str
    callback: str

    @property
    def reports(self) -> bool:
        """Whether results leave this repository."""
        return self.level != "L1"


def read(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the variables, which the workflow passes. Unset ones are empty.

    Raises:
        SettingsError: A variable is wrong, or is missing at this level.
    """
    level = environment.get("RELAY_LEVEL") or "L1"
    pytorch = environment.get("RELAY_PYTORCH") or "source"
    callback = environment.get("RELAY_CALLBACK", "")
    if level not in LEVELS:
        raise SettingsError(f"RELAY_LEVEL is {level!r}: set it to one of {', '.join(LEVELS)}")
    if pytorch not in ("source", "nightly"):
        raise SettingsError(f"RELAY_PYTORCH is {pytorch!r}: set it to source or nightly")
    settings = Settings(level, pytorch, environment.get("RELAY_LABEL", ""), callback)
    if settings.reports and pytorch != "source":
        raise SettingsError(
            f"RELAY_PYTORCH is {pytorch!r}, and {level} reports on a commit: set it to source"
        )
    address = urlsplit(callback)
    local = address.scheme == "http" and address.hostname == "127.0.0.1"
    if settings.reports and not (address.hostname and (address.scheme == "https" or local)):
        raise SettingsError(
            f"RELAY_CALLBACK is {callback!r}, and {level} reports to it: set it to the https "
            "address that docs/features/relay.md speaks of"
        )
    return settings
