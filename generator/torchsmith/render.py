"""Rendering: the only place that talks to copier.

Copier and what it needs take a third of a second to import: what renders imports it, and what finds
its renders in the cache does without.
"""

from __future__ import annotations

import ast
import errno
import json
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from torchsmith import __version__, cache, catalog, git
from torchsmith.checkout import Pin, check_out, pin
from torchsmith.errors import InputError, did_you_mean, unreachable
from torchsmith.project import ANSWERS
from torchsmith.template import TEMPLATE

MOVED = "if it moved: torchsmith update --template URL"
"""What to do where a project's template cannot be reached."""


def read_answers(file: Path) -> dict[str, Any]:
    """Return the answers in a YAML file, an answers file of copier's included."""
    try:
        answers = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{file} is not YAML") from error
    if not isinstance(answers, dict):
        raise InputError(f"{file} does not hold answers, which are lines like 'backend_name: foo'")
    return {str(key): value for key, value in answers.items() if not str(key).startswith("_")}


def require_empty(destination: Path) -> None:
    """Refuse to render where something is, but for git's folder.

    Raises:
        InputError: ``destination`` is a file, or a folder with something in it.
    """
    if destination.exists() and not destination.is_dir():
        raise InputError(f"'{destination}' is a file: name a new folder")
    if destination.is_dir() and any(entry.name != ".git" for entry in destination.iterdir()):
        raise InputError(f"'{destination}' is not empty: name a new folder")


@dataclass(frozen=True)
class Job:
    """What is to be rendered.

    Attributes:
        answers: Answers by question; the others take their defaults.
        source: Path or URL of the template.
        ref: Its branch, tag or commit; None takes the latest tag.
        last: A file with answers of another version, which take the place of defaults.
        defaults: What takes the place of the template's defaults.
    """

    answers: Mapping[str, Any]
    source: str = str(TEMPLATE)
    ref: str | None = "HEAD"
    last: Path | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def hint(self) -> str:
        """What to do if the template cannot be reached."""
        return MOVED if self.last else "name another with --template"

    def pin(self) -> Pin | None:
        """Return the version that is rendered, or None if its files may change."""
        return pin(self.source, self.ref, self.hint)

    def key(self, pinned: Pin) -> str:
        """Return all that decides what is rendered."""
        last = self.last.read_text("utf-8", "surrogateescape") if self.last else None
        tools = (__version__, version("copier"), version("jinja2"))
        every = (pinned.source, pinned.version, pinned.content, self.answers, last, tools)
        return json.dumps(every, sort_keys=True, default=str)


@dataclass(frozen=True)
class _Task:
    """A job, the version that it is of, and a folder to work in, absent yet."""

    job: Job
    pinned: Pin | None
    work: Path

    def run(self) -> None:
        """Render into the folder ``files`` of the folder to work in."""
        self.work.mkdir()
        with tempfile.TemporaryDirectory(dir=self.work.parent) as temporary:
            _run_copier(self.job, self.pinned, self.work / "files", Path(temporary))


def render(destination: Path, job: Job, *, ask: bool = False) -> None:
    """Render into a folder that is empty or absent, and ``ask`` what has no answer.

    Raises:
        InputError: The answers or the destination are wrong; nothing was written.
    """
    require_empty(destination)
    with _made_beside(destination) as stage, cache.scratch() as temporary:
        _run_copier(job, job.pin(), stage, temporary, ask=ask)


@contextmanager
def renders(*jobs: Job, meanwhile: Callable[[], object] = lambda: None) -> Iterator[list[Path]]:
    """Yield folders with what jobs render, for the length of the block and to be read only.

    What was rendered before is taken from the cache; the rest is rendered side by side, and
    ``meanwhile`` is called while other processes begin with it.

    Raises:
        InputError: One of them cannot be rendered.
    """
    with cache.scratch() as scratch, ExitStack() as stack:
        folders = []
        missing = []
        for number, job in enumerate(jobs):
            pinned = job.pin()
            if not pinned:
                _require_version(job)  # which copier would find out after a clone
            key = job.key(pinned) if pinned else None
            kept = stack.enter_context(cache.kept(key)) if key else None
            work = scratch / str(number)
            folders.append(kept or work / "files")
            if not kept:
                missing.append((number, key, _Task(job, pinned, work)))
        _side_by_side([task for _, _, task in missing], meanwhile)
        for number, key, task in missing:
            if key:
                folders[number] = stack.enter_context(cache.keep(key, task.work))
        yield folders


def _require_version(job: Job) -> None:
    from torchsmith.versions import require_version

    folder = Path(job.source)
    if job.ref and (not folder.is_dir() or git.root_of(folder) == folder.resolve()):
        require_version(job.source, job.ref, job.hint)


def _side_by_side(tasks: list[_Task], meanwhile: Callable[[], object]) -> None:
    """Run tasks, all but the last in processes of their own, which end with this one's block."""
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker(task)) for task in tasks[:-1]]
        # Not in a thread: copier changes the working directory, the environment and more.
        meanwhile()
        for task in tasks[-1:]:
            task.run()
        for worker in workers:
            done, said = worker.communicate()
            sys.stderr.write(said.decode(errors="replace"))
            if worker.returncode:
                raise RuntimeError(f"a process that renders ended with {worker.returncode}")
            if error := pickle.loads(done):
                raise error


@contextmanager
def _worker(task: _Task) -> Iterator[subprocess.Popen[bytes]]:
    """Run a task in another process, which is killed where the block ends before it."""
    # From its own folder, since Python looks for modules where it starts.
    process = subprocess.Popen(
        [sys.executable, "-c", "from torchsmith.render import work; work()"],
        cwd=task.work.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stdin is not None
            pickle.dump(task, process.stdin)
            process.stdin.flush()
            yield process
        finally:
            process.kill()


def work() -> None:
    """Run the task that standard input has, and write what the user did wrong, or None."""
    task = pickle.load(sys.stdin.buffer)
    error: Exception | None = None
    with ExitStack() as stack:
        with suppress(OSError):  # so that the folder stays if the process that made it is killed
            stack.enter_context(cache.hold(task.work.parent))
        try:
            task.run()
        except InputError as mistake:
            error = InputError(str(mistake))
        except OSError as refusal:
            error = refusal
    pickle.dump(error, sys.stdout.buffer)


def _run_copier(
    job: Job, pinned: Pin | None, stage: Path, temporary: Path, *, ask: bool = False
) -> None:
    """Let copier render into ``stage``."""
    import copier
    from plumbum import local

    if job.last:
        stage.mkdir()
        shutil.copy2(job.last, stage / ANSWERS)
    with _copier_errors(job.source, job.hint), _temporary_files_in(temporary):
        template = str(check_out(pinned, temporary / "template") if pinned else job.source)
        # Where copier finds git, it runs it for each file, for the sake of a repository that is
        # not there yet: half of its time.
        with local.env(PATH="") if pinned else nullcontext():
            copier.run_copy(
                template,
                stage,
                data=dict(job.answers),
                vcs_ref=job.ref,
                defaults=not ask,
                overwrite=job.last is not None,
                quiet=True,
                user_defaults=dict(job.defaults),
                # Equal answers give equal files: what a machine remembers counts in `new` alone.
                settings=copier.Settings(),
            )
    if pinned:
        _record(pinned, stage / ANSWERS)


def _record(pinned: Pin, answers: Path) -> None:
    """Write into a project's answers what copier knows only of a template that it clones."""

    def recorded(line: re.Match[str]) -> str:
        """Write both lines as the template has written this one: as JSON, or as a YAML library."""
        lines = {"_commit": pinned.version, "_src_path": pinned.source}
        if not line[1].startswith('"'):
            return yaml.safe_dump(lines, width=math.inf, allow_unicode=True)
        return "".join(
            f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in lines.items()
        )

    path = r"(?m)^_src_path: (.*\n(?: .*\n)*)"  # a long one may be folded
    answers.write_text(re.sub(path, recorded, answers.read_text("utf-8")), "utf-8")


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Let what others leave behind if they are killed lie in a folder that is removed then."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _made_beside(destination: Path) -> Iterator[Path]:
    """Yield a folder that becomes ``destination`` at the end of the block, unless that fails."""
    missing = [folder for folder in destination.absolute().parents if not folder.exists()]
    destination.parent.mkdir(parents=True, exist_ok=True)
    kept = False
    try:
        with cache.scratch(destination.absolute().parent, ".torchsmith-new-") as scratch:
            stage = scratch / destination.absolute().name
            yield stage
            try:
                _move(stage, destination)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                raise InputError(f"'{destination}' is not empty: name a new folder") from error
        kept = True
    finally:
        with suppress(OSError):  # somebody else may have put something there
            for folder in () if kept else missing:
                folder.rmdir()


def _move(stage: Path, destination: Path) -> None:
    """Put a folder in the place of one that is absent or empty but for git's folder."""
    if Path.cwd().is_relative_to(destination.absolute()):
        _fill(destination, stage)
        return
    repository = destination / ".git"
    if repository.exists() and not (stage / ".git").exists():
        repository.rename(stage / ".git")
        try:
            stage.replace(destination)
        except OSError:
            (stage / ".git").rename(repository)
            raise
    else:
        stage.replace(destination)


def _fill(destination: Path, stage: Path) -> None:
    """Move files into a folder that somebody works in: another in its place would be lost on them.

    Raises:
        InputError: Something is in the folder.
    """
    require_empty(destination)
    moved: list[Path] = []
    try:
        for entry in list(stage.iterdir()):
            moved.append(entry.rename(destination / entry.name))
    except BaseException:
        for entry in moved:
            entry.rename(stage / entry.name)
        raise


@contextmanager
def _copier_errors(source: str, hint: str) -> Iterator[None]:
    """Run copier; what it holds against the user becomes an InputError."""
    from copier.errors import CopierError, DirtyLocalWarning, UserMessageError
    from plumbum import ProcessExecutionError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DirtyLocalWarning)
            yield
    except git.GitError as error:
        raise unreachable(source, error.reason, hint) from error
    except UserMessageError as error:
        raise InputError(str(error)) from error
    except ProcessExecutionError as error:
        reason = git.reason(error.stderr or "") or "git failed"
        raise _about(source, reason, hint) or unreachable(source, reason, hint) from error
    except (CopierError, ValueError, TypeError) as error:
        raise _about(source, str(error), hint) or InputError(_sentence(error)) from error


def _about(source: str, reason: str, hint: str) -> InputError | None:
    """What copier, or git under it, has against the template's place or version."""
    from torchsmith.versions import no_version

    if unknown := re.fullmatch(r"Unknown revision: (['\"])(.*)\1|invalid reference: (.*)", reason):
        return no_version(source, unknown[2] or unknown[3], hint)
    if reason == "Local template must be a directory.":
        reason = "it is no folder, and an address of git's begins with git+ or ends with .git"
        return unreachable(source, reason, hint)
    return None


def _sentence(error: Exception) -> str:
    """What an exception of copier's says to its user: our validators' words without its preface."""
    text = str(error)
    if wrong := re.fullmatch(
        r"Invalid choice for '(\w+)': (.*) is not in (\[.*\])", text, re.DOTALL
    ):
        # Both are Python literals. The choices are those of the version that is rendered.
        given, offered = map(ast.literal_eval, wrong.groups()[1:])
        offer = f"choose from {', '.join(offered)}{did_you_mean(str(given), offered)}"
        return f"there is no {wrong[1]} '{given}': {offer}"
    if text.startswith("Validation error for question"):
        text = text.partition("': ")[2]
    text = " ".join(text.split())
    if wrong := re.match(r"there is no (question|feature|dtype) '([^']*)'", text):
        choices = {
            "question": catalog.questions(),
            "feature": catalog.features(),
            "dtype": catalog.dtypes(),
        }
        text += did_you_mean(wrong[2], choices[wrong[1]])
    return text
