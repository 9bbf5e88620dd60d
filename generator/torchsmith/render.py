"""Renders a version of a template, with answers to its questions, into a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from torchsmith.checkout import Checkout, check_out
from torchsmith.destination import made, require_free
from torchsmith.errors import InputError
from torchsmith.renderer import Ask, Renderer
from torchsmith.scratch import scratch
from torchsmith.template import TEMPLATE
from torchsmith.versions import MOVED, RECORDED


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


@dataclass(frozen=True)
class Job:
    """A render to do.

    Attributes:
        answers: Answers by question; the others take their defaults.
        source: Path or URL of the template.
        ref: Its branch, tag or commit.
        last: A file with answers of another version, which replace defaults.
        defaults: Values that replace the template's defaults.
        recorded: Whether a project records the template and its version.
    """

    answers: Mapping[str, Any]
    source: str = str(TEMPLATE)
    ref: str = "HEAD"
    last: Path | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    recorded: bool = False

    def check_out(self, temporary: Path) -> Checkout:
        """Return the template's version; its files may be in the ``temporary`` folder.

        Raises:
            InputError: A project records a relative path, or there is no such version.
        """
        relative = ":" not in self.source and not Path(self.source).expanduser().is_absolute()
        if self.recorded and relative:
            raise InputError(
                f"_src_path of the project is '{self.source}', which depends on the current "
                "folder: torchsmith update --template PATH"
            )
        hint = MOVED if self.last or self.recorded else "name another with --template"
        fix = RECORDED if self.recorded else "name a branch or commit"
        return check_out(self.source, self.ref, temporary, hint, fix)

    def values(
        self, renderer: Renderer, destination: Path, ask: Ask | None = None
    ) -> dict[str, Any]:
        """Return the variables that the template's files are rendered with."""
        last = read_answers(self.last) if self.last else {}
        return renderer.answers(
            self.answers, last=last, offered=self.defaults, destination=destination, ask=ask
        )


def render(
    destination: Path,
    job: Job,
    *,
    ask: Ask | None = None,
    before: Callable[[Mapping[str, Any]], None] | None = None,
    written: Callable[[], None] | None = None,
) -> None:
    """Render into a folder that is empty or absent.

    Args:
        destination: The folder.
        job: What is rendered.
        ask: Asks the user the questions that have no answer.
        before: Called with all answers before anything is written.
        written: Called after each file.

    Raises:
        InputError: The answers or the destination are wrong; nothing was written.
    """
    require_free(destination, Path(job.source))
    with scratch() as temporary:
        renderer = Renderer(job.check_out(temporary))
        values = job.values(renderer, destination, ask)
        if before:
            before(values)
        with made(destination) as stage:
            renderer.write(values, stage, written)


@contextmanager
def renders(*jobs: Job) -> Iterator[list[Path]]:
    """Yield a folder with the render of each job, until the end of the block.

    Raises:
        InputError: A job cannot be rendered.
    """
    with scratch() as temporary:
        versions: dict[tuple[str, str], Renderer] = {}
        found = []
        for number, job in enumerate(jobs):
            key = (job.source, job.ref)
            if key not in versions:
                versions[key] = Renderer(job.check_out(temporary))
            folder = temporary / f"render-{number}"
            found.append((versions[key], job.values(versions[key], folder), folder))
        for renderer, values, folder in found:
            renderer.write(values, folder)
        yield [folder for _, _, folder in found]
