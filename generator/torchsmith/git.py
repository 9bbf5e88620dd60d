"""The git commands that torchsmith needs: queries of a repository, and merges of trees."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torchsmith.errors import InputError
from torchsmith.shell import quoted

LEAST = (2, 38)
"""The first git that merges trees without a working tree."""
NEEDED = f"{'.'.join(map(str, LEAST))} or newer"

DIFF_OPTIONS = (
    "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames",
    "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip
"""Options of `git diff` that make its output independent of the user's settings."""


class GitError(InputError):
    """Git failed; ``reason`` is its error, ``said`` all that it and its hooks printed to stderr."""

    def __init__(self, folder: Path, reason: str, said: str) -> None:
        super().__init__(f"'{folder}': {reason}")
        self.reason = reason
        self.said = said


def git(
    folder: Path,
    *arguments: str,
    text: str = "",
    index: Path | None = None,
    objects: Path | None = None,
    worst: int = 0,
) -> str:
    """Run git in a folder and return what it prints.

    Args:
        folder: Where it runs.
        arguments: Its arguments.
        text: Its standard input.
        index: An index file to use in place of the repository's.
        objects: A folder of objects to use in place of the repository's.
        worst: The highest exit status that is not an error.

    Raises:
        GitError: Git failed; the message is git's.
        InputError: Git is missing.
    """
    # Queries take no locks: a killed `git status` would leave the index locked.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    if index:
        environment["GIT_INDEX_FILE"] = str(index)
    if objects:
        environment["GIT_OBJECT_DIRECTORY"] = str(objects)
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "-c", f"diff.orderFile={os.devnull}", *arguments],
            capture_output=True,
            input=text.encode("utf-8", "surrogateescape"),
            env=environment,
        )
    except FileNotFoundError as error:
        raise InputError("git is not installed: install it, updates are merges of git's") from error
    # File names and contents may not be UTF-8.
    out, said = (each.decode("utf-8", "surrogateescape") for each in (done.stdout, done.stderr))
    if not 0 <= done.returncode <= worst:
        because = reason(said) or f"git {arguments[0]} failed"
        raise GitError(folder, because, said.strip() or because)
    return out


def reason(said: str) -> str:
    """Return git's error message, without the advice that may follow."""
    lines = said.strip().splitlines()
    fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return (fatal or lines[-1:] or [""])[0].removeprefix("fatal: ").removeprefix("error: ")


def too_old() -> str:
    """Return git's version if it is too old to merge trees, or "".

    Raises:
        InputError: Git is missing.
    """
    version = git(Path.cwd(), "version").split()[2]
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    return version if numbers < LEAST else ""


def require_merges() -> None:
    """Refuse a git that is too old to merge trees.

    Raises:
        InputError: Git is too old or missing.
    """
    if version := too_old():
        raise InputError(f"updates need git {NEEDED}, and this is git {version}: update it")


def address(source: str) -> str:
    """Return a template's address for git, with copier's short forms expanded."""
    short, _, path = source.partition(":")
    host = {"gh": "github.com", "gl": "gitlab.com"}.get(short)
    return (
        f"https://{host}/{path.removesuffix('.git')}.git" if host else source.removeprefix("git+")
    )


def root_of(folder: Path) -> Path | None:
    """Return the root of the repository that ``folder`` is in, or None.

    Raises:
        InputError: Git is missing, or refuses the repository.
    """
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel").removesuffix("\n"))
    except GitError as error:
        for parent in (folder.absolute(), *folder.absolute().parents):
            if (parent / ".git").exists():
                trust = f": git config --global --add safe.directory {quoted(str(parent))}"
                fix = trust if "dubious ownership" in error.reason else ""
                raise InputError(f"git refuses '{parent}', {error.reason}{fix}") from error
        return None


def changes(folder: Path) -> list[str]:
    """Return what is uncommitted in ``folder``, as `git status` prints it."""
    return git(folder, "status", "--porcelain", "--", ".").splitlines()


def overlooked(folder: Path) -> list[str]:
    """Return the files in ``folder`` that are skip-worktree or assume-unchanged."""
    listed = git(folder, "ls-files", "-v", "-z", "--", ".").split("\0")[:-1]
    marked = (line[2:] for line in listed if line[0] == "S" or line[0].islower())
    return [path for path in marked if os.path.lexists(folder / path)]  # a sparse checkout has none


File = tuple[str, str]
"""A file's mode and object id in git."""
Files = dict[str, File]
"""Files by path."""


@dataclass(frozen=True)
class Conflict:
    """One version of a file in conflict, as an entry of git's index.

    Attributes:
        path: The file.
        stage: 1 is the common version, 2 the user's, 3 the template's.
        file: Its mode and object id.
    """

    path: str
    stage: int
    file: File


@dataclass(frozen=True)
class Differences:
    """The differences of two trees; ``totals`` counts files, inserted lines and deleted lines."""

    added: list[str]
    changed: list[str]
    deleted: list[str]
    text: str
    totals: tuple[int, int, int]


class ScratchRepository:
    """A bare repository that can read another one's objects, but writes only its own."""

    def __init__(self, folder: Path, source: Path | None = None) -> None:
        """Create it in ``folder``; it can read the objects of the repository of ``source``."""
        self.folder = folder
        kind, objects = "sha1", ""
        if source:
            kind = git(source, "rev-parse", "--show-object-format").strip()
            objects = git(
                source, "rev-parse", "--path-format=absolute", "--git-path", "objects"
            ).removesuffix("\n")
        git(folder.parent, "init", "--quiet", "--bare", f"--object-format={kind}", str(folder))
        if objects:
            quoted_for_git = re.sub(r'(["\\])', r"\\\1", objects).replace("\n", "\\n")
            line = os.fsencode(f'"{quoted_for_git}"\n')
            (folder / "objects" / "info" / "alternates").write_bytes(line)

    def run(self, *arguments: str, text: str = "", index: str = "index") -> str:
        """Run git in this repository and return what it prints."""
        return git(self.folder, *arguments, text=text, index=self.folder / index)

    def store(self, folder: Path) -> str:
        """Store the files in a folder, ignored ones too, and return their tree."""
        there = (f"--git-dir={self.folder}", "--work-tree=.")
        index = self.folder / "index-of-a-folder"
        index.unlink(missing_ok=True)
        git(folder, *there, "add", "--all", "--force", ".", index=index)
        return git(folder, *there, "write-tree", index=index).strip()

    def files(self, tree: str) -> Files:
        """Return the files of a tree."""
        found = {}
        for line in self.run("ls-tree", "-r", "-z", tree).split("\0")[:-1]:
            information, _, path = line.partition("\t")
            mode, _, content = information.split()
            found[path] = (mode, content)
        return found

    def tree(self, files: Mapping[str, File]) -> str:
        """Write a tree with exactly these files and return it."""
        self.run("read-tree", "--empty")
        lines = (f"{mode} {content}\t{path}\0" for path, (mode, content) in files.items())
        self.run("update-index", "-z", "--index-info", text="".join(lines))
        return self.run("write-tree").strip()

    def renames(self, before: str, after: str) -> dict[str, str]:
        """Return the files that are renamed between two trees, with their new paths."""
        listed = self.run(
            "diff-tree", "-r", "-z", "--find-renames", "--no-rename-empty", "--diff-filter=R",
            "--name-status", before, after,
        )  # fmt: skip
        words = listed.split("\0")[:-1]
        return dict(zip(words[1::3], words[2::3], strict=True))

    def merge(self, common: Files, sides: Mapping[str, Files]) -> tuple[str, list[Conflict]]:
        """Merge files path by path, and return the tree with the conflicts in it.

        Args:
            common: The merge base. Both sides must have all its paths: git then looks for no
                renames, which could pair files of two features.
            sides: Ours and theirs, by their names in conflict markers.

        Raises:
            GitError: Git failed.
        """
        identity = ("-c", "user.name=torchsmith", "-c", "user.email=torchsmith@localhost")
        base = self.run(*identity, "commit-tree", "-m", "common", self.tree(common)).strip()
        for name, files in sides.items():
            made = self.run(*identity, "commit-tree", "-m", name, "-p", base, self.tree(files))
            self.run("update-ref", f"refs/heads/{name}", made.strip())
        command = ("merge-tree", "--write-tree", "-z", "--no-messages", *sides)
        tree, *lines = git(self.folder, *command, worst=1).split("\0")[:-1]
        conflicts = []
        for line in lines:
            information, _, path = line.partition("\t")
            mode, content, stage = information.split()
            conflicts.append(Conflict(path, int(stage), (mode, content)))
        return tree, conflicts

    def differences(self, before: str, after: str) -> Differences:
        """Compare two trees."""
        listed = self.run("diff-tree", "-r", "-z", "--no-renames", "--name-status", before, after)
        words = listed.split("\0")[:-1]
        kinds = list(zip(words[1::2], words[::2], strict=True))
        added, changed, deleted = (
            [path for path, kind in kinds if kind in which] for which in ("A", "MT", "D")
        )
        shown = self.run("diff", *DIFF_OPTIONS, "--shortstat", "--patch", before, after)
        numbers, _, text = shown.partition("\n\n")
        files, inserted, gone = (
            int(found[1]) if (found := re.search(rf"(\d+) {word}", numbers)) else 0
            for word in ("file", "insertion", "deletion")
        )
        return Differences(added, changed, deleted, text, (files, inserted, gone))

    def write(self, tree: str, paths: Iterable[str], folder: Path) -> None:
        """Write files of a tree into a folder, as a checkout does."""
        folder.mkdir()
        there = (f"--git-dir={self.folder}", "--work-tree=.")
        index = self.folder / "index"
        git(folder, *there, "read-tree", tree, index=index)
        listed = "".join(f"{path}\0" for path in paths)
        git(folder, *there, "checkout-index", "-z", "--stdin", text=listed, index=index)

    def compared(self, tree: str, folder: Path, *options: str) -> str:
        """Return the output of `git diff` from a tree to a folder.

        If the folder is under git, its own repository compares, with its settings for line endings,
        file modes, filters and attributes.

        Args:
            tree: The tree.
            folder: The folder, in the repository whose objects this one reads, or in none.
            options: Options of `git diff`.
        """
        index = self.folder / "index-of-a-folder"
        index.unlink(missing_ok=True)
        if root_of(folder):
            there, prefix = [], _prefix(folder)
        else:
            there, prefix = [f"--git-dir={self.folder}", "--work-tree=."], ""
        run = partial(git, folder, *there, index=index, objects=self.folder / "objects")
        run("read-tree", *([f"--prefix={prefix}"] if prefix else []), tree)
        whole = run("write-tree").strip()
        if not there and (absent := _absent(folder)):
            known = {*run("ls-files", "-z").split("\0")}
            rows = [row for path, row in absent.items() if path in known]
            run("update-index", "-z", "--index-info", text="".join(rows))
            paths = "".join(f"{path}\0" for path in absent if path in known)
            run("update-index", "--skip-worktree", "-z", "--stdin", text=paths)
        return run("--literal-pathspecs", "diff", "--relative", *DIFF_OPTIONS, whole, *options)


def _absent(folder: Path) -> dict[str, str]:
    """Return the files of a folder that a sparse checkout leaves out.

    Each path, relative to the folder, maps to its line for `git update-index --index-info`.
    """
    found = {}
    prefix = _prefix(folder)
    for line in git(folder, "ls-files", "-t", "--stage", "-z", "--", ".").split("\0")[:-1]:
        information, _, path = line.partition("\t")
        if information[0] == "S" and not os.path.lexists(folder / path):
            found[path] = f"{information[2:]}\t{prefix}{path}\0"
    return found


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def stage(
    folder: Path, paths: Iterable[str], conflicts: Sequence[Conflict], scratch: ScratchRepository
) -> None:
    """Stage the result of a merge of a folder.

    Args:
        folder: The folder; it has the merged files already.
        paths: Added, changed and deleted files.
        conflicts: Index entries of the files in conflict.
        scratch: The repository with their contents.
    """
    unmerged = {each.path for each in conflicts}
    ended = [path for path in paths if path not in unmerged]
    there = [path for path in ended if _is_file(folder / path)]
    for how, which in (("--force-remove", set(ended) - set(there)), ("--add", there)):
        listed = "".join(f"{path}\0" for path in which)
        git(folder, "update-index", how, "-z", "--stdin", text=listed)
    for content in {each.file[1] for each in conflicts}:
        blob = git(scratch.folder, "cat-file", "blob", content)
        git(folder, "hash-object", "-w", "--stdin", text=blob)
    prefix = _prefix(folder)
    unmerged_entries = [
        f"{each.file[0]} {each.file[1]} {each.stage}\t{prefix}{each.path}" for each in conflicts
    ]
    set_entries(folder, sorted(unmerged), unmerged_entries)


def entries(folder: Path, paths: Collection[str]) -> list[str]:
    """Return git's index of some files of a folder, as lines for :func:`set_entries`."""
    prefix = _prefix(folder)
    listed = git(folder, "ls-files", "--full-name", "--stage", "-z", "--", ".").split("\0")[:-1]
    wanted = {f"{prefix}{path}" for path in paths}
    return [line for line in listed if line.partition("\t")[2] in wanted]


def set_entries(
    folder: Path, paths: Iterable[str], lines: Iterable[str], index: Path | None = None
) -> None:
    """Replace all entries of some files of a folder in git's index.

    Args:
        folder: The folder.
        paths: The files.
        lines: Their new entries, as `git ls-files --stage` prints them.
        index: The index file; by default the repository's.
    """
    nothing = "0" * len(git(folder, "hash-object", "--stdin").strip())
    prefix = _prefix(folder)
    text = [*(f"0 {nothing}\t{prefix}{path}" for path in paths), *lines]
    git(folder, "update-index", "-z", "--index-info", text="".join(f"{line}\0" for line in text),
        index=index)  # fmt: skip


def _prefix(folder: Path) -> str:
    """Return the path of a folder in its repository, with a slash at its end, or ""."""
    return git(folder, "rev-parse", "--show-prefix").removesuffix("\n")
