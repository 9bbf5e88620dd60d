"""Whether a template has a version, asked of its repository: a clone would take seconds."""

from __future__ import annotations

import re
from pathlib import Path

from torchsmith import git
from torchsmith.errors import InputError, did_you_mean, unreachable
from torchsmith.update import releases

MOST_SHOWN = 5
"""How many versions a message lists at most, the newest ones."""

# A commit, as its hash or as `git describe` names it, and what git reckons from a name: HEAD~2.
_COMMIT = re.compile(r"(.*-g)?[0-9a-f]{4,64}|.*[~^@].*")


def require_version(source: str, version: str, hint: str) -> None:
    """Refuse a version that a template does not have.

    Whether a remote template has a commit is known only when it is cloned.

    Args:
        source: Path or URL of the template.
        version: A tag, branch or commit.
        hint: What to do if the template cannot be reached.

    Raises:
        InputError: The template has no such version, or cannot be reached.
    """
    if not _has(source, version, hint):
        raise no_version(source, version, hint)


def no_version(source: str, version: str, hint: str) -> InputError:
    """Return the error that a template has no such version, with those that it has."""
    known = releases(source, hint)
    shown = ["...", *known[-MOST_SHOWN:]] if len(known) > MOST_SHOWN else known
    offer = f"its releases are {', '.join(shown)}" if known else "it has no release"
    close = did_you_mean(version, known)
    return InputError(f"the template '{source}' has no version '{version}': {offer}{close}")


def _has(source: str, version: str, hint: str) -> bool:
    try:
        if Path(source).is_dir():
            return bool(
                git.git(Path(source), "rev-parse", "--verify", "--quiet", f"{version}^{{commit}}")
            )
        listed = git.git(Path.cwd(), "ls-remote", git.address(source))
    except git.GitError as error:
        if Path(source).is_dir():
            return False
        raise unreachable(source, error.reason, hint) from error
    names = {line.partition("\t")[2] for line in listed.splitlines()}
    prefixes = ("", "refs/", "refs/tags/", "refs/heads/")
    return bool(_COMMIT.fullmatch(version)) or any(prefix + version in names for prefix in prefixes)
