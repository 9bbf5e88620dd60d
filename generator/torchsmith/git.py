"""Git, as far as the commands need it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
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
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "GIT_INDEX_FILE": str(index)} if index else None,
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
    """Return the root of the repository that ``folder`` is in, or None."""
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel").strip())
    except InputError:
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


def differences(folder: Path, commit: str) -> Differences:
    """Compare a folder's files, except ignored ones, with a commit; the index plays no part."""
    with tempfile.TemporaryDirectory(prefix="torchsmith-") as scratch:
        index = Path(scratch) / "index"
        git(folder, "read-tree", commit, index=index)
        git(folder, "add", "--all", ".", index=index)

        def diff(*options: str) -> str:
            return git(folder, "diff", "--cached", "--relative", *options, commit, index=index)

        def names(kinds: str) -> list[str]:
            listed = diff("--no-renames", "--name-only", "-z", f"--diff-filter={kinds}")
            return sorted(filter(None, listed.split("\0")))

        return Differences(names("A"), names("MT"), names("D"), diff())


def reason(said: str) -> str:
    """Return what git says went wrong, without the advice that may follow."""
    lines = said.strip().splitlines()
    fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return (fatal or lines[-1:] or [""])[0].removeprefix("fatal: ").removeprefix("error: ")


def content(folder: Path, commit: str, path: str) -> bytes:
    """Return a file, as seen from ``folder``, as a commit has it."""
    command = ["git", "-C", str(folder), "cat-file", "blob", f"{commit}:./{path}"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def commit(folder: Path, path: str) -> None:
    """Commit one file, in a clone that nobody sees."""
    identity = ("-c", "user.name=torchsmith", "-c", "user.email=torchsmith@localhost")
    git(folder, *identity, "-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify",
        "--message", path, "--", path)  # fmt: skip


def merge_file(mine: Path, base: Path, theirs: Path, names: tuple[str, str, str]) -> bool:
    """Merge three versions into ``mine``; return whether conflict markers were left in it."""
    labels = [word for name in names for word in ("-L", name)]
    command = ["git", "merge-file", *labels, str(mine), str(base), str(theirs)]
    return subprocess.run(command, capture_output=True).returncode != 0


@dataclass(frozen=True)
class Unmerged:
    """One of the versions of a file in conflict, as git's index has them.

    Attributes:
        mode: Its mode, in git's notation.
        object: The name of its content.
        stage: 1 is the common version, 2 the user's, 3 the template's.
        path: The file, as seen from the folder that was asked.
        full: The same, as seen from the root of the repository.
    """

    mode: str
    object: str
    stage: int
    path: str
    full: str


def unmerged(folder: Path) -> list[Unmerged]:
    """Return what the index has of the files in conflict in ``folder``."""
    listings = (git(folder, "ls-files", "-u", "-z", *more) for more in ((), ("--full-name",)))
    found = []
    for line, full in zip(*(listing.split("\0")[:-1] for listing in listings), strict=True):
        information, _, path = line.partition("\t")
        mode, object, stage = information.split()
        found.append(Unmerged(mode, object, int(stage), path, full.partition("\t")[2]))
    return found


def add_unmerged(folder: Path, path: str, stages: Mapping[int, bytes]) -> None:
    """Put the versions of a file in conflict into the index."""
    full = git(folder, "rev-parse", "--show-prefix").strip() + path
    executable = (folder / path).stat().st_mode & 0o111
    mode = "100755" if executable else "100644"
    _index(folder, [
        Unmerged(mode, _store(folder, text), stage, path, full) for stage, text in stages.items()
    ])  # fmt: skip


def mark_unmerged(folder: Path, entries: Iterable[Unmerged], *, objects: Path) -> None:
    """Put entries into the index whose contents the repository at ``objects`` has."""
    for entry in entries:
        command = ["git", "-C", str(objects), "cat-file", "blob", entry.object]
        _store(folder, subprocess.run(command, check=True, capture_output=True).stdout)
    _index(folder, list(entries))


def _store(folder: Path, text: bytes) -> str:
    command = ["git", "-C", str(folder), "hash-object", "-w", "--stdin"]
    done = subprocess.run(command, input=text, check=True, capture_output=True)
    return done.stdout.decode().strip()


def _index(folder: Path, entries: list[Unmerged]) -> None:
    nothing = "0" * 40
    lines = [f"0 {nothing}\t{path}\0" for path in sorted({entry.full for entry in entries})]
    lines += [f"{each.mode} {each.object} {each.stage}\t{each.full}\0" for each in entries]
    command = ["git", "-C", str(folder), "update-index", "-z", "--index-info"]
    subprocess.run(command, input="".join(lines).encode(), check=True, capture_output=True)
