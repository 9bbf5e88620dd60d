"""Checks out versions of templates into folders."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torchsmith import git
from torchsmith.errors import unreachable
from torchsmith.template import CHECKOUT, REPOSITORY, TAG, TEMPLATE, is_release
from torchsmith.versions import in_order, no_version


@dataclass(frozen=True)
class Checkout:
    """A version of a template.

    Attributes:
        folder: Its files.
        source: Path or URL of the template, as projects record it.
        version: The version, as projects record it; empty where the template is in no repository.
    """

    folder: Path
    source: str
    version: str


def check_out(source: str, ref: str, scratch: Path, hint: str, fix: str) -> Checkout:
    """Return a version of a template.

    Args:
        source: Path or URL of the template.
        ref: A tag, branch or commit; HEAD of a local folder includes uncommitted changes.
        scratch: The folder for files, and for clones that later calls use again.
        hint: What to do if the template cannot be reached.
        fix: What to do if it has no release and no such version.

    Raises:
        InputError: The template cannot be reached, or has no such version.
    """
    own = CHECKOUT is None and source == str(TEMPLATE)
    if own or (is_release() and (source, ref) == (REPOSITORY, TAG)):
        return Checkout(TEMPLATE, REPOSITORY, TAG)
    folder = Path(source).expanduser().absolute()
    local = folder.is_dir() and folder.suffix != ".git"
    if local and (shutil.which("git") is None or git.root_of(folder) != folder.resolve()):
        return Checkout(folder, source, "")
    repository = scratch / f"{hashlib.sha256(source.encode()).hexdigest()[:8]}.git"
    clone = f"--git-dir={repository}"
    try:
        if local and _has_exactly(folder, ref):
            return Checkout(folder, source, _version(folder / ".git", "HEAD"))
        if not repository.exists():
            # By default, git copies a folder's objects, and fetches all objects from a host.
            there = (
                ("--shared", "--", str(folder))
                if folder.exists()
                else ("--filter=blob:none", "--", git.address(source))
            )
            git.git(scratch, "clone", "--quiet", "--bare", *there, str(repository))
        commit = _commit(repository, ref)
        if commit and local and ref == "HEAD" and git.changes(folder):
            commit = _with_changes(folder, clone, commit)
        if commit:
            files = Path(tempfile.mkdtemp(dir=scratch))
            index = repository / f"index-{files.name}"
            git.git(
                files, clone, "--work-tree=.", "read-tree", "--reset", "-u", commit, index=index
            )
            return Checkout(files, source, _version(repository, commit))
    except git.GitError as error:
        raise unreachable(source, error.reason, hint) from error
    raise no_version(source, ref, hint, fix)


def _has_exactly(folder: Path, ref: str) -> bool:
    """Return whether a repository's folder has the files of a version, and no others."""
    commit = _commit(folder / ".git", ref)
    if not commit or commit != _commit(folder / ".git", "HEAD"):
        return False
    status = git.git(folder, "status", "--porcelain", "--ignored", "--untracked-files=all")
    return not status and not git.overlooked(folder)


def _version(repository: Path, commit: str) -> str:
    """Return the name of a commit: the newest release at it, or what `git describe` prints."""
    run = partial(git.git, repository.parent, f"--git-dir={repository}")
    here = in_order(run("tag", "--points-at", commit).splitlines())
    return here[-1] if here else run("describe", "--tags", "--always", commit).strip()


def _commit(repository: Path, ref: str) -> str:
    """Return the commit that ``ref`` names, or ""."""
    try:
        return git.git(
            repository.parent,
            f"--git-dir={repository}",
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{ref}^{{commit}}",
        ).strip()
    except git.GitError:
        return ""


def _with_changes(folder: Path, clone: str, commit: str) -> str:
    """Commit all files of a folder in a clone; equal files give equal commits."""
    git.git(folder, clone, "--work-tree=.", "add", "--all")
    tree = git.git(folder, clone, "write-tree").strip()
    who = "torchsmith <torchsmith@localhost> 0 +0000"
    text = f"tree {tree}\nparent {commit}\nauthor {who}\ncommitter {who}\n\nUncommitted\n"
    return git.git(folder, clone, "hash-object", "-t", "commit", "-w", "--stdin", text=text).strip()
