"""`torchsmith new`: renders a backend, and on request commits, builds and tests it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchsmith.commands.checks import require_template, template_address, understood
from torchsmith.commands.common import (
    FOUND,
    BuildPython,
    Data,
    Json,
    console,
    parse,
    print_json,
    say,
    working,
)
from torchsmith.commands.first_commit import (
    commit,
    distribution,
    require_no_repository,
    wants_git,
)
from torchsmith.errors import InputError
from torchsmith.shell import quoted_path

if TYPE_CHECKING:
    from rich.progress import Progress

    from torchsmith.commands.interview import Interview
    from torchsmith.project import Project

ELSEWHERE = "name another with --template"
"""The fix if the template cannot be reached."""


def new(
    destination: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            help="New or empty folder. On a terminal, the command asks for a missing one.",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    answers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML file of answers; --data takes precedence."),
    ] = None,
    defaults: Annotated[
        bool,
        typer.Option(
            "--defaults", help="Ask nothing: use the default of each question without an answer."
        ),
    ] = False,
    with_git: Annotated[
        bool | None,
        typer.Option(
            "--git/--no-git",
            help="Create a git repository with a first commit. By default, ask on a terminal.",
            show_default=False,
        ),
    ] = None,
    build: Annotated[
        bool, typer.Option("--build", help="Build the backend and install it into the environment.")
    ] = False,
    test: Annotated[
        bool, typer.Option("--test", help="Build and install the backend, and run its tests.")
    ] = False,
    python: BuildPython = None,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Path or URL of the template; by default the one that came with this command.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="Tag, branch or commit of the template; by default the newest release of "
            "--template.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Render a backend. The folder torch-NAME names it NAME, unless you give backend_name.

    Example: torchsmith new torch-acme --defaults -d features=amp,rng

    The status is 1 if the backend was rendered, but its first commit, build or tests failed.
    """
    # The renderer takes a fifth of a second to import, which --help does not need.
    from torchsmith.doctor import default_python
    from torchsmith.project import find
    from torchsmith.remembered import recall, remember
    from torchsmith.render import Job, render

    source = _source(template)
    asked = parse(data)
    given = {**_given(answers), **asked}
    terminal = sys.stdin.isatty() and not as_json
    ask = terminal and not defaults
    if destination is None:
        destination = _folder(given, ask=ask)
    offered = recall() | ({} if "backend_name" in given else _name(destination, ask=ask))
    if with_git:
        require_no_repository(destination)
    python = python or default_python()
    if build or test:
        from torchsmith.building import require_tools

        require_tools(python)
    job = Job(given, source, _version_to_render(template, source, to), defaults=offered)
    interview = _interview() if ask else None
    with _bar() as bar:
        begin = partial(_begin, destination, given, interview, bar)
        written = partial(bar.advance, bar.task_ids[0])
        render(destination, job, ask=interview, before=begin, written=written)
    project = find(destination, updatable=False)
    _warn_of_no_version(project, committed=template is not None or to is not None)
    if not as_json:
        features = ", ".join(project.features) or "the core alone"
        say(f"{destination} is rendered, with {features}.")
    if terminal:
        typed = {key for key in project.answers if key in asked or (ask and key not in given)}
        if told := remember({key: project.answers[key] for key in typed}, offered):
            say(told)
    report = {
        "destination": os.path.realpath(destination),
        "backend_name": project.answers["backend_name"],
        "features": project.features,
        "version": project.version,
        "committed": False,
        "installed": False,
        "tests": None,
    }
    try:
        if with_git or (with_git is None and ask and wants_git(destination)):
            report["committed"] = commit(project)
        if build or test:
            _build_and_test(destination, python, report, test=test)
    finally:
        if as_json:
            print_json(report)
    if not as_json:
        _say_what_is_next(destination, project, report)
    if with_git and not report["committed"]:
        raise typer.Exit(FOUND)


def _given(answers: Path | None) -> dict[str, Any]:
    from torchsmith.render import read_answers

    try:
        given = read_answers(answers) if answers else {}
    except UnicodeDecodeError as error:
        raise InputError(f"{answers} is not UTF-8: save it as UTF-8") from error
    return understood(given)


def _name(folder: Path, *, ask: bool) -> dict[str, str]:
    """Return the default of backend_name from the folder's name: torch-acme gives acme.

    Raises:
        InputError: A backend cannot have the name, and ``ask`` is false.
    """
    from torchsmith.catalog import name_problem

    # The typed name: of a link, not of its target.
    typed = Path(os.path.normpath(folder.absolute()))
    named = re.fullmatch(r"(?:py)?torch[-_. ](.+)", typed.name, re.IGNORECASE)
    if named is None:
        return {}  # not named like a backend: the template's default applies
    name = named[1].replace("-", "_")
    reason, _, idea = name_problem(name).rpartition(": try ")
    if not reason:
        return {"backend_name": name}
    without_accents = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    idea = without_accents if not name_problem(without_accents) else idea[1:-1]
    if not ask:
        raise InputError(
            f"the folder's name cannot be a backend's name, as {reason}: try -d backend_name={idea}"
        )
    return {"backend_name": idea}


def _source(template: str | None) -> str:
    from torchsmith.template import TEMPLATE

    if template is None:
        require_template()
        return str(TEMPLATE)
    return template_address(template)


def _version_to_render(template: str | None, source: str, to: str | None) -> str:
    """Return the version to render: ``to``, or the newest release.

    Raises:
        InputError: The template has no such version, or git is missing.
    """
    from torchsmith import git
    from torchsmith.template import CHECKOUT, TAG
    from torchsmith.versions import releases

    if template is None and (to is None or (CHECKOUT is None and to == TAG)):
        return "HEAD"
    if template is None and CHECKOUT is None:
        raise InputError(
            f"this torchsmith has {TAG} of the template and no other version: leave --to "
            f"out, or install the torchsmith of {to}"
        )
    folder = Path(source)
    if folder.is_dir() and folder.suffix != ".git":
        if shutil.which("git") is None:
            if to is None:
                return "HEAD"
            raise InputError(f"'{to}' is found with git, which is not installed: install it")
        if git.root_of(folder) != Path(os.path.realpath(folder)):
            if to is None:
                return "HEAD"
            raise InputError(
                f"'{source}' is not a git repository, so it has no version '{to}': "
                "leave --to out, or "
                "name the template's repository with --template"
            )
    return to or ["HEAD", *releases(source, ELSEWHERE)][-1]


def _warn_of_no_version(project: Project, *, committed: bool) -> None:
    """Print a warning if the project was not rendered from a version of the template.

    Args:
        project: The rendered project.
        committed: Whether only committed files were rendered.
    """
    from torchsmith import git
    from torchsmith.template import TEMPLATE

    because = "The project has no version, so it cannot be updated."
    if not project.version:
        say(f"Warning: the template is not a git repository, or git is not installed. {because}")
        return
    ours = not committed and shutil.which("git") and git.root_of(TEMPLATE) == TEMPLATE
    if ours and git.changes(TEMPLATE):
        say(f"Warning: the template has uncommitted changes. {because}")


def _interview() -> Interview:
    from torchsmith.commands.interview import Interview

    return Interview()


def _folder(given: dict[str, Any], *, ask: bool) -> Path:
    """Ask for the name, unless it is ``given``, and for a folder.

    Raises:
        InputError: ``ask`` is false.
    """
    if not ask:
        raise InputError("no folder is named: torchsmith new torch-NAME")
    from torchsmith.commands import interview

    if "backend_name" not in given:
        given["backend_name"] = interview.name("foo")
    return Path(interview.folder(str(given["backend_name"])))


@contextmanager
def _bar() -> Iterator[Progress]:
    """Yield a progress bar, which a terminal shows once it is started."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    out = console(stderr=True)
    columns = (TextColumn("Writing"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    bar = Progress(*columns, console=out, transient=True, disable=not out.is_terminal)
    bar.add_task("")
    try:
        yield bar
    finally:
        bar.stop()


def _begin(
    destination: Path,
    given: Mapping[str, Any],
    interview: Interview | None,
    bar: Progress,
    values: Mapping[str, Any],
) -> None:
    """Show a summary, ask for confirmation, and start the bar.

    Raises:
        typer.Exit: The user declines.
    """
    from torchsmith.commands.summary import size, summary

    if interview:
        import questionary

        say("\n".join(["", *summary(destination, values, {**given, **interview.answers}), ""]))
        if not questionary.confirm("Write it?").unsafe_ask():
            say("Nothing was written.")
            raise typer.Exit
    bar.update(bar.task_ids[0], total=size(values)["files"])
    bar.start()


def _build_and_test(destination: Path, python: str, report: dict[str, Any], *, test: bool) -> None:
    from torchsmith import building

    try:
        with _timed("Building") as progress:
            building.install(destination, python, progress)
        report["installed"] = True
        if test:
            with _timed("Testing") as progress:
                report["tests"] = building.test(destination, python, progress)
            say(f"  {report['tests']}")
    except building.StepError as error:
        say(str(error))
        raise typer.Exit(FOUND) from error


@contextmanager
def _timed(step: str) -> Iterator[Callable[[str], None]]:
    """Show the progress of a long step, and print how long it took."""
    start = time.monotonic()
    with working(step) as progress:
        yield progress
    say(f"{step} took {time.monotonic() - start:.0f} s.")


def _say_what_is_next(destination: Path, project: Project, report: dict[str, Any]) -> None:
    from torchsmith import catalog, git

    # The path may contain a missing folder, followed by `..`.
    there = destination if destination.exists() else Path(os.path.normpath(destination))
    steps = [] if there.resolve() == Path.cwd() else [f"cd {quoted_path(there)}"]
    if not report["committed"]:
        begun = shutil.which("git") and git.root_of(project.root)
        words = (
            "git add -A . && git commit -m" if begun else "git init && git add -A && git commit -m"
        )
        steps.append(f"{words} 'Render {distribution(project)}'   # updates need git")
    if not report["installed"]:
        torch = catalog.torch_window()["tested"]
        steps.append(f"pip install torch=={torch} -r requirements-build.txt")
        steps.append("torchsmith doctor   # checks the build tools")
        steps.append("pip install --no-build-isolation '.[test]'")
    if report["tests"] is None:
        steps.append("pytest -n auto")
    say("Next steps:\n" + "".join(f"\n  {step}" for step in steps))
    say("\ndocs/bring-up.md describes how to bring up your device.")
