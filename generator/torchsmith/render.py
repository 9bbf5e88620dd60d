"""Rendering: the only place that talks to copier."""

from __future__ import annotations

import ast
import errno
import json
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import copier
import yaml
from copier.errors import CopierError, DirtyLocalWarning, UserMessageError
from plumbum import ProcessExecutionError, local

from torchsmith import catalog, git
from torchsmith.errors import InputError, did_you_mean, unreachable
from torchsmith.project import ANSWERS
from torchsmith.template import CHECKOUT, REPOSITORY, TAG, TEMPLATE, is_release

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


def render(
    destination: Path,
    answers: Mapping[str, Any],
    *,
    source: str = str(TEMPLATE),
    ref: str | None = "HEAD",
    last: Path | None = None,
    ask: bool = False,
    defaults: Mapping[str, Any] | None = None,
    quiet: bool = True,
) -> None:
    """Render the template into ``destination``.

    Args:
        destination: A folder that is empty or absent.
        answers: Answers by question; the others are asked or take their defaults.
        source: Path or URL of the template.
        ref: Its branch, tag or commit; None takes the latest tag.
        last: A file with answers of another version, which take the place of defaults.
        ask: Whether to ask the questions that have no answer.
        defaults: What takes the place of the template's defaults.
        quiet: Whether to say nothing on the way.

    Raises:
        InputError: The answers or the destination are wrong; nothing was written.
    """
    require_empty(destination)
    if packaged(source, ref):
        source, ref = str(TEMPLATE), "HEAD"
    installed = CHECKOUT is None and source == str(TEMPLATE)
    with _beside(destination) as stage:
        if last:
            stage.mkdir()
            shutil.copy2(last, stage / ANSWERS)
        with (
            _copier(source, MOVED if last else "name another with --template"),
            # Copier starts git for each file, to set a bit in the index of a repository that is
            # not there yet. It does without where it finds none, and an installed template needs
            # none: that saves a third of the time.
            local.env(PATH="") if installed else nullcontext(),
        ):
            copier.run_copy(
                source,
                stage,
                data=dict(answers),
                vcs_ref=ref,
                defaults=not ask,
                overwrite=last is not None,
                quiet=quiet,
                user_defaults=dict(defaults or {}),
                # Equal answers give equal files: what a machine remembers counts in `new` alone.
                settings=copier.Settings(),
            )
        if installed:
            _record_release(stage / ANSWERS)


def packaged(source: str, version: str | None) -> bool:
    """Whether an installed command has this version of a template with it, and needs no network."""
    return (source, version) == (REPOSITORY, TAG) and is_release()


def _record_release(answers: Path) -> None:
    """Write address and version of the template into a project's answers.

    What is rendered from an installed package, which is no repository, then updates as what was
    rendered from the release itself.
    """
    lines = f"_commit: {json.dumps(TAG)}\n_src_path: {json.dumps(REPOSITORY)}\n"
    text = answers.read_text("utf-8")
    text, _ = re.subn(r"(?m)^(_commit|_src_path): .*\n", "", text)
    first = re.search(r"(?m)^[^#\n]", text)
    at = first.start() if first else len(text)
    answers.write_text(text[:at] + lines + text[at:], "utf-8")


@contextmanager
def _beside(destination: Path) -> Iterator[Path]:
    """Yield a folder that becomes ``destination`` at the end of the block, unless that fails."""
    missing = [folder for folder in destination.absolute().parents if not folder.exists()]
    destination.parent.mkdir(parents=True, exist_ok=True)
    kept = False
    try:
        with tempfile.TemporaryDirectory(prefix=".torchsmith-", dir=destination.parent) as scratch:
            stage = Path(scratch) / destination.absolute().name
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


@contextmanager
def _copier(source: str, hint: str) -> Iterator[None]:
    """Run copier; what it holds against the user becomes an InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DirtyLocalWarning)
            yield
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
            "dtype": catalog.load("dtypes")["dtype_catalog"]["default"],
        }
        text += did_you_mean(wrong[2], choices[wrong[1]])
    return text
