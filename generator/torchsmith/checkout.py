"""Versions of a template that cannot change, and their files in a folder."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from torchsmith import git
from torchsmith.errors import unreachable
from torchsmith.template import CHECKOUT, REPOSITORY, TAG, TEMPLATE, is_release


@dataclass(frozen=True)
class Pin:
    """A version of a template.

    Attributes:
        source: Path or URL of the template, as projects record it.
        version: The version, as projects record it.
        content: What tells its files from those of any other version: the commit.
        place: The folder that has the files, or the address of the repository that does.
    """

    source: str
    version: str
    content: str
    place: Path | str


def pin(source: str, ref: str | None, hint: str) -> Pin | None:
    """Return the version that a template has at the moment, or None if that can change.

    It can where the template is no repository, or has uncommitted changes. Of a remote one only
    releases are told without a clone.

    Args:
        source: Path or URL of the template.
        ref: A tag, branch or commit; None is the latest tag.
        hint: What to do if the template cannot be reached.

    Raises:
        InputError: The template cannot be reached.
    """
    own = CHECKOUT is None and source == str(TEMPLATE)
    if own or (is_release() and (source, ref) == (REPOSITORY, TAG)):
        return Pin(REPOSITORY, TAG, _installed(), TEMPLATE)
    if ref is None or ref.startswith("-") or shutil.which("git") is None:
        return None
    folder = Path(source).expanduser().absolute()
    if not folder.is_dir() or folder.suffix == ".git":
        return _remote(source, ref, hint)
    if git.root_of(folder) != folder.resolve() or (ref == "HEAD" and git.changes(folder)):
        return None
    try:
        commit = git.git(folder, "rev-parse", "--verify", f"{ref}^{{commit}}").strip()
        version = git.git(folder, "describe", "--tags", "--always", commit).strip()
    except git.GitError:
        return None
    return Pin(source, version, commit, str(folder))


def _remote(source: str, tag: str, hint: str) -> Pin | None:
    address, name = git.address(source), f"refs/tags/{tag}"
    try:
        listed = git.git(Path.cwd(), "ls-remote", "--", address, name, f"{name}^{{}}")
    except git.GitError as error:
        raise unreachable(source, error.reason, hint) from error
    # Of an annotated tag, which is an object of its own, the commit comes last.
    commit = listed.splitlines()[-1].split()[0] if listed else ""
    return Pin(source, tag, commit, address) if commit else None


def _installed() -> str:
    """What tells this package from another one of the same version: it lists its files' sums."""
    record = distribution("torchsmith").read_text("RECORD") or ""
    return hashlib.sha256(record.encode()).hexdigest()


def check_out(pinned: Pin, folder: Path) -> Path:
    """Return a folder with the files of a version: where they are, or else ``folder``.

    Raises:
        GitError: The template cannot be reached.
    """
    if isinstance(pinned.place, Path):
        return pinned.place
    # Git would copy the objects of a local repository, and fetch every version of a remote one.
    how = "--shared" if Path(pinned.place).is_dir() else "--filter=blob:none"
    clone = ("clone", "--quiet", "--no-checkout", how, "--", pinned.place, str(folder))
    git.git(Path.cwd(), *clone)
    git.git(folder, "checkout", "--quiet", "--detach", pinned.content)
    return folder
