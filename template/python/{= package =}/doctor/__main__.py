"""Prints which interfaces work, are declined or are missing. Exits with 1 if any is missing."""

from __future__ import annotations

import argparse
import faulthandler
import sys
from pathlib import Path

from .. import __name__ as package
from . import against, ready, surfaces
from .audit import audit
from .environment import devices, environment, libraries
from .probes import SURFACES
from .report import Report


def examine() -> Report:
    """Test all interfaces on the current device."""
    # A fallback is not a failure of an interface.
    policy = surfaces.backend.set_fallback_policy("silent")
    try:
        tried = [surfaces.attempt(item) for item in sorted(SURFACES, key=_section)]
    finally:
        surfaces.backend.set_fallback_policy(policy)
    return Report(environment(), libraries(), devices(), tried, audit())


def _section(item: surfaces.Surface) -> int:
    return [other.section for other in SURFACES].index(item.section)


def main(arguments: list[str] | None = None) -> int:
    """Print the report and return the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m {package}.doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the same as JSON")
    others = parser.add_mutually_exclusive_group()
    others.add_argument(
        "--ready",
        action="store_true",
        help="say what the project in this folder lacks for each level of PyTorch's relay, and "
        "print the text of the pull request that asks for one",
    )
    others.add_argument(
        "--against",
        metavar="TORCH",
        help="compare with another PyTorch, a version (pip downloads it), a wheel or a folder "
        "that has torch in it: which operators and virtual functions of this backend's differ",
    )
    given = parser.parse_args(arguments)
    if given.ready:
        return _ready(parser, given.json)
    if given.against is None:
        report = examine()
        print(report.json() if given.json else report.text())
        return 0 if report.healthy else 1
    try:
        changes = against.compare(given.against)
    except against.Unavailable as error:
        parser.error(str(error))
    print(against.to_json(changes) if given.json else against.to_text(changes, given.against))
    return 1 if changes else 0


def _ready(parser: argparse.ArgumentParser, as_json: bool) -> int:
    try:
        readiness = ready.examine(Path.cwd())
    except ready.NoProjectError as error:
        parser.error(str(error))
    print(readiness.json() if as_json else readiness.text())
    return 0 if readiness.ready else 1


if __name__ == "__main__":
    # If the process crashes, the stack shows which interface was tested.
    faulthandler.enable()
    sys.exit(main())
