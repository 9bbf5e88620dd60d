"""Git, as far as the commands need it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchsmith.errors import InputError


class GitError(InputError):
    """Git refused; ``reason`` is what it said."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"'{folder}': {reason}")
        self.reason = reason


def git(folder: Path, *arguments: str, index: Path | None = None) -> str:
    """Run git in ``folder``, with another index if one is given, and return what it prints.

    Raises:
        GitError: Git refused; the text is its own.
        InputError: Git is missing.
    """
    # Who only asks writes nothing: a status that is killed would leave the index locked.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    if index:
        environment["GIT_INDEX_FILE"] = str(index)
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            check=True,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",  # names and lines of files may be anything
            env=environment,
        )
    except FileNotFoundError as error:
        raise InputError("git is not installed: install it, updates are merges of git's") from error
    except subprocess.CalledProcessError as error:
        raise GitError(folder, reason(error.stderr) or f"git {arguments[0]} failed") from error
    return done.stdout


def address(source: str) -> str:
    """Return a template's address as git takes it, which does not know copier's short forms."""
    short, _, path = source.partition(":")
    host = {"gh": "github.com", "gl": "gitlab.com"}.get(short)
    return (
        f"https://{host}/{path.removesuffix('.git')}.git" if host else source.removeprefix("git+")
    )


def root_of(folder: Path) -> Path | None:
    """Return the root of the repository that ``folder`` is in, or None.

    Raises:
        InputError: Git is missing.
    """
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel").strip())
    except GitError:
        return None


def changes(folder: Path) -> list[str]:
    """Return what is uncommitted in ``folder``, as `git status` prints it."""
    return git(folder, "status", "--porcelain", "--", ".").splitlines()


@dataclass(frozen=True)
class Differences:
    """How the files in a folder differ from a commit, and the text that git shows of it."""

    added: list[str]
    changed: list[str]
    deleted: list[str]
    text: str


def differences(folder: Path, tree: str) -> Differences:
    """Compare a folder's files, ignored ones too, with a tree; the index plays no part."""
    with tempfile.TemporaryDirectory(prefix="torchsmith-") as scratch:
        index = Path(scratch) / "index"
        git(folder, "read-tree", tree, index=index)
        git(folder, "add", "--all", "--force", ".", index=index)
        diff = ("diff", "--cached")
        text = git(folder, *diff, tree, index=index)
        listed = git(folder, *diff, "--no-renames", "--name-status", "-z", tree, index=index)
        words = listed.split("\0")[:-1]
        kinds = list(zip(words[1::2], words[::2], strict=True))
        added, changed, deleted = (
            [path for path, kind in kinds if kind in which] for which in ("A", "MT", "D")
        )
        return Differences(added, changed, deleted, text)


def reason(said: str) -> str:
    """Return what git says went wrong, without the advice that may follow."""
    lines = said.strip().splitlines()
    fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return (fatal or lines[-1:] or [""])[0].removeprefix("fatal: ").removeprefix("error: ")


Files = dict[str, tuple[str, str]]
"""Files by path, each with its mode and the name of its content, as git has them."""


def borrow(source: Path, folder: Path) -> None:
    """Make ``folder`` a repository that has what ``source`` has, but no files."""
    git(source, "clone", "--quiet", "--shared", "--no-checkout", str(source), str(folder))


def files(repository: Path, tree: str) -> Files:
    """Return the files of a tree."""
    found = {}
    for line in git(repository, "ls-tree", "-r", "-z", tree).split("\0")[:-1]:
        information, _, path = line.partition("\t")
        mode, _, object = information.split()
        found[path] = (mode, object)
    return found


def store(repository: Path, folder: Path) -> str:
    """Store the files in a folder, ignored ones too, as a tree in a repository, and return it."""
    there = (f"--git-dir={repository / '.git'}", "--work-tree=.")
    with tempfile.TemporaryDirectory(prefix="torchsmith-") as scratch:
        index = Path(scratch) / "index"
        git(folder, *there, "add", "--all", "--force", ".", index=index)
        return git(folder, *there, "write-tree", index=index).strip()


def merge(repository: Path, sides: Sequence[Files], names: tuple[str, str]) -> None:
    """Merge files into a repository that has none yet, and leave conflicts as git does.

    Args:
        repository: Where their contents are.
        sides: What is common, ours and theirs.
        names: What conflict markers call the last two.

    Raises:
        GitError: Git refused.
    """
    common, theirs, ours = (_tree(repository, sides[number]) for number in (0, 2, 1))
    git(repository, "checkout-index", "--all", "--index")
    labels = {f"GITHEAD_{tree}": name for tree, name in zip((ours, theirs), names, strict=True)}
    # By path alone: what looks like a rename may be two features' files.
    command = ["git", "-C", str(repository), "-c", "merge.renames=false", "merge-recursive",
               common, "--", ours, theirs]  # fmt: skip
    done = subprocess.run(command, capture_output=True, env={**os.environ, **labels})
    if done.returncode not in (0, 1):
        raise GitError(repository, reason(done.stderr.decode(errors="replace")))


def _tree(repository: Path, files: Files) -> str:
    """Make files all that the index has, and return them as a tree."""
    git(repository, "read-tree", "--empty")
    _index(repository, (f"{mode} {object}\t{path}" for path, (mode, object) in files.items()))
    return git(repository, "write-tree").strip()


@dataclass(frozen=True)
class Unmerged:
    """One of the versions of a file in conflict, as git's index has them.

    Attributes:
        path: The file.
        stage: 1 is the common version, 2 the user's, 3 the template's.
        mode: Its mode, in git's notation.
        object: The name of its content.
    """

    path: str
    stage: int
    mode: str
    object: str


def unmerged(repository: Path) -> list[Unmerged]:
    """Return what the index has of the files in conflict."""
    found = []
    for line in git(repository, "ls-files", "-u", "-z").split("\0")[:-1]:
        information, _, path = line.partition("\t")
        mode, object, stage = information.split()
        found.append(Unmerged(path, int(stage), mode, object))
    return found


def mark_unmerged(folder: Path, entries: Iterable[Unmerged], *, objects: Path) -> None:
    """Put entries into the index of a folder's repository.

    Args:
        folder: What the paths of the entries are seen from.
        entries: The files in conflict.
        objects: The repository that has their contents.
    """
    entries = list(entries)
    for entry in entries:
        command = ["git", "-C", str(objects), "cat-file", "blob", entry.object]
        text = subprocess.run(command, check=True, capture_output=True).stdout
        command = ["git", "-C", str(folder), "hash-object", "-w", "--stdin"]
        subprocess.run(command, input=text, check=True, capture_output=True)
    prefix = git(folder, "rev-parse", "--show-prefix").removesuffix("\n")
    paths = sorted({entry.path for entry in entries})
    lines = [f"0 {'0' * 40}\t{prefix}{path}" for path in paths]
    lines += [f"{each.mode} {each.object} {each.stage}\t{prefix}{each.path}" for each in entries]
    _index(folder, lines)


def _index(folder: Path, lines: Iterable[str]) -> None:
    command = ["git", "-C", str(folder), "update-index", "-z", "--index-info"]
    text = "".join(f"{line}\0" for line in lines)
    subprocess.run(
        command, input=text.encode("utf-8", "surrogateescape"), check=True, capture_output=True
    )
