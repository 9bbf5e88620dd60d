"""The versions of a template, read from its repository."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from packaging.version import InvalidVersion, Version

from torchsmith import git
from torchsmith.errors import InputError, did_you_mean, unreachable

MOVED = "if it moved: torchsmith update --template URL"
"""The fix if a project's template cannot be reached."""

RECORDED = "correct _commit in .copier-answers.yml"
"""The fix if the template lacks the version that a project records."""

MOST_SHOWN = 5
"""How many versions a message lists at most, the newest ones."""


class VersionError(InputError):
    """A template has no such version."""


def releases(source: str, hint: str = MOVED) -> list[str]:
    """Return the released versions of a template, the oldest first.

    Args:
        source: Path or URL of the template.
        hint: What to do if it cannot be reached.

    Raises:
        InputError: The template cannot be reached.
    """
    try:
        tags = git.git(Path.cwd(), "ls-remote", "--tags", "--refs", "--", git.address(source))
    except git.GitError as error:
        raise unreachable(source, error.reason, hint) from error
    return in_order(line.rpartition("refs/tags/")[2] for line in tags.splitlines())


def in_order(tags: Iterable[str]) -> list[str]:
    """Return the tags that are releases, the oldest first."""
    found = []
    for tag in tags:
        try:
            version = Version(tag)
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            found.append((version, tag))
    return [tag for _, tag in sorted(found)]


def no_version(source: str, version: str, hint: str, fix: str) -> VersionError:
    """Return the error that a template has no such version: its releases, or a fix."""
    known = releases(source, hint)
    shown = ["...", *known[-MOST_SHOWN:]] if len(known) > MOST_SHOWN else known
    offer = f"its releases are {', '.join(shown)}" if known else f"it has no release: {fix}"
    close = did_you_mean(version, known)
    return VersionError(f"the template '{source}' has no version '{version}': {offer}{close}")
