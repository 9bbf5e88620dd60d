"""Plants faults, one at a time, and reports which suite of tests catches each.

python -m faults                      # all faults with the gate's tests, until one fails
python -m faults autocast             # faults whose name or file contains this word
python -m faults --all                # with the nightly tests, too
python -m faults --suites every       # with all tests: lists every test file that catches a fault
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from faults.listing import ROOT, Fault, read
from faults.places import Checkout, NotBuiltError, Place, Project


def catch(place: Place, fault: Fault, which: str, *, slow: bool) -> list[str]:
    """Return the test files that fail: of the likely tests, the first of all tests, or all.

    Raises:
        NotBuiltError: The fault does not compile.
    """
    caught: set[str] = set()
    with place.planted(fault):
        suites = [] if which == "likely" else place.suites(fault.path)
        for suite in suites if which == "every" else dict.fromkeys([*fault.likely, *suites]):
            caught |= place.run(suite, slow=slow, first=which != "every")
            if caught and which != "every":
                break
    return sorted(caught)


def main() -> int:
    """Run the command; its status is 1 if less than nine of ten faults are caught."""
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(prog="faults", description=summary)
    parser.add_argument("words", nargs="*", help="of the names or files of faults, instead of all")
    parser.add_argument("--all", action="store_true", help="the nightly tests, too")
    parser.add_argument(
        "--suites",
        choices=("likely", "first", "every"),
        default="first",
        help="only those that the list names, until the first that fails (default), or every one",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="add each result, and repeat none of it"
    )
    parser.add_argument("--scratch", type=Path, default=ROOT / "build" / "faults")
    given = parser.parse_args()

    chosen = [
        fault
        for fault in read()
        if not given.words or any(word in f"{fault.name} {fault.file}" for word in given.words)
    ]
    if given.json and given.json.exists():
        lines = given.json.read_text("utf-8").splitlines()
        known = {json.loads(line)["name"] for line in lines}
        chosen = [fault for fault in chosen if fault.name not in known]
    missed = 0
    places: dict[bool, Place] = {}
    for fault in chosen:
        if fault.is_rendered not in places:
            kind, folder = (Project, "full") if fault.is_rendered else (Checkout, "checkout")
            places[fault.is_rendered] = kind(given.scratch.resolve() / folder)
        began = time.monotonic()
        try:
            caught = catch(places[fault.is_rendered], fault, given.suites, slow=given.all)
        except NotBuiltError as error:
            print(f"'{fault.name}' does not compile: correct it\n{error}", file=sys.stderr)
            missed += 1
            continue
        took = time.monotonic() - began
        missed += not caught
        print(f"{took:5.0f} s  {fault.name}: {', '.join(caught) or 'NOT CAUGHT'}", flush=True)
        if given.json:
            row = {"name": fault.name, "file": fault.file, "kind": fault.kind, "caught": caught}
            with given.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    print(f"{len(chosen) - missed} of {len(chosen)} are caught")
    return int(missed > len(chosen) / 10)


if __name__ == "__main__":
    sys.exit(main())
