"""`torchsmith new`: renders a backend, and builds and tests it on request."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from torchsmith.commands.checks import require_kinds, require_template, require_writable
from torchsmith.commands.common import FOUND, Json, parse, print_json, say, working
from torchsmith.errors import InputError

if TYPE_CHECKING:
    from torchsmith.project import Project

Result = TypeVar("Result")


def new(
    destination: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Folder to write: new, or empty.", show_default=False
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", metavar="KEY=VALUE", help="An answer; may be repeated."),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML file of answers; --data goes before it."),
    ] = None,
    defaults: Annotated[
        bool, typer.Option("--defaults", help="Ask nothing: what has no answer takes its default.")
    ] = False,
    build: Annotated[
        bool, typer.Option("--build", help="Build it and install it into the environment.")
    ] = False,
    test: Annotated[bool, typer.Option("--test", help="Build it and run its tests.")] = False,
    python: Annotated[
        str | None,
        typer.Option(
            metavar="PROGRAM", help="The Python to build with; by default the active environment's."
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Path or URL of the template; by default the one of this command.",
        ),
    ] = None,
    ref: Annotated[
        str, typer.Option(metavar="VERSION", help="Version of the template: tag or commit.")
    ] = "HEAD",
    as_json: Json = False,
) -> None:
    """Render a backend.

    Example: torchsmith new torch-foo --defaults -d backend_name=foo -d 'features=[amp]'

    The status is 1 if it was rendered, but the build or a test failed.
    """
    # Copier takes a third of a second to import, which --help need not wait for.
    from torchsmith.doctor import default_python
    from torchsmith.project import find
    from torchsmith.render import render

    source = _source(template)
    _require_versions(source, ref)
    _require_place(destination, source)
    given = {**_read(answers), **parse(data)}
    python = python or default_python()
    if build or test:
        from torchsmith.building import require_tools

        require_tools(python)
    ask = not defaults and not as_json and sys.stdin.isatty()
    render(destination, given, source=source, ref=ref, ask=ask)
    if template is None and ref == "HEAD":
        _warn_of_uncommitted_changes()
    project = find(destination, updatable=False)
    if not project.version:
        say(
            "Warning: the template is not under git, or git is not installed. What was rendered "
            "belongs to no version, and cannot be updated."
        )
    if not as_json:
        features = ", ".join(project.features) or "the core alone"
        say(f"{destination} is rendered, with {features}.")
    report = {
        "destination": str(destination.resolve()),
        "backend_name": project.answers["backend_name"],
        "features": project.features,
        "version": project.version,
        "installed": False,
        "tests": None,
    }
    try:
        if build or test:
            _build_and_test(destination, python, report, test=test)
    finally:
        if as_json:
            print_json(report)
    if not as_json:
        _say_what_is_next(destination, project, installed=build or test, tested=test)


def _read(answers: Path | None) -> dict[str, Any]:
    from torchsmith.render import read_answers

    try:
        given = read_answers(answers) if answers else {}
    except UnicodeDecodeError as error:
        raise InputError(f"{answers} is not UTF-8: save it as UTF-8") from error
    require_kinds(given)
    return given


def _source(template: str | None) -> str:
    from torchsmith.template import TEMPLATE

    if template is None:
        require_template()
        return str(TEMPLATE)
    if ":" in template:
        if shutil.which("git") is None:
            raise InputError(f"'{template}' is read with git, which is not installed: install it")
        return template
    folder = Path(template).expanduser()
    if folder.suffix not in (".git", ".bundle") and not (folder / "copier.yml").is_file():
        raise InputError(f"there is no template in '{template}': name a folder with copier.yml")
    # The project keeps it, and updates are asked for from elsewhere.
    return str(folder.absolute())


def _require_versions(source: str, ref: str) -> None:
    """Refuse a version of what has none, which copier would pass over."""
    from torchsmith import git

    folder = Path(source)
    if ref != "HEAD" and folder.is_dir() and folder.suffix != ".git":
        if shutil.which("git") is None:
            raise InputError(f"'{ref}' is found with git, which is not installed: install it")
        if git.root_of(folder) != folder.resolve():
            raise InputError(
                f"'{source}' is not under git, so it has no version '{ref}': leave --ref out, or "
                "name the template's repository with --template"
            )


def _require_place(destination: Path, source: str) -> None:
    """Refuse what the system would refuse half-way, and what would change the template."""
    for place in (destination, *destination.parents):
        if place.is_symlink() and not place.exists():
            raise InputError(f"'{place}' is a link to nothing: remove it, or name a new folder")
        if place.exists():
            break
    if not place.is_dir():
        raise InputError(f"'{place}' is a file: name a new folder")
    require_writable(place)
    if Path(source).is_dir() and destination.resolve().is_relative_to(Path(source).resolve()):
        raise InputError(
            f"'{destination}' is inside the template: name a folder outside '{source}'"
        )


def _warn_of_uncommitted_changes() -> None:
    from torchsmith import git
    from torchsmith.template import TEMPLATE

    if shutil.which("git") and git.root_of(TEMPLATE) == TEMPLATE and git.changes(TEMPLATE):
        say(
            "Warning: the template has uncommitted changes. What was rendered from them belongs to "
            "no version, and cannot be updated."
        )


def _build_and_test(destination: Path, python: str, report: dict[str, Any], *, test: bool) -> None:
    from torchsmith.building import StepError, install
    from torchsmith.building import test as run_tests

    try:
        _step("Building", lambda progress: install(destination, python, progress))
        report["installed"] = True
        if test:
            report["tests"] = _step(
                "Testing", lambda progress: run_tests(destination, python, progress)
            )
            say(f"  {report['tests']}")
    except StepError as error:
        say(str(error))
        raise typer.Exit(FOUND) from error


def _step(name: str, run: Callable[[Callable[[str], None]], Result]) -> Result:
    """Run a long step, show how far it is, and say how long it took."""
    start = time.monotonic()
    with working(name) as progress:
        result = run(progress)
    say(f"{name} took {time.monotonic() - start:.0f} s.")
    return result


def _say_what_is_next(
    destination: Path, project: Project, *, installed: bool, tested: bool
) -> None:
    distribution = f"torch-{project.answers['backend_name'].replace('_', '-')}"
    steps = [
        f"cd {destination}",
        f"git init && git add -A && git commit -m 'Render {distribution}'   # updates need git",
    ]
    if not installed:
        steps.append("torchsmith doctor   # is everything here that a build needs?")
        steps.append("pip install --no-build-isolation '.[test]'")
    if not tested:
        steps.append("pytest")
    say("What to do next:\n" + "".join(f"\n  {step}" for step in steps))
    say("\ndocs/bring-up.md says how to put your device in the simulator's place, file by file.")
