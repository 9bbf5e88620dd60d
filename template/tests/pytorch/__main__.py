"""PyTorch's own device-generic tests on this device, from the command line:

PYTORCH_SOURCE=../pytorch python tests/pytorch
PYTORCH_SOURCE=../pytorch python tests/pytorch test_view_ops.py 'nn/*' -k transpose

PYTORCH_SOURCE names a checkout or a source package of the installed PyTorch. Without it only the
tests in tests/pytorch/wheel run, which need nothing but PyTorch's wheel.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT / "tests")

from pytorch import gate, source  # noqa: E402
from pytorch.expectations import (  # noqa: E402
    KNOWN,
    Expectations,
    Mistake,
    arrived,
    read,
    release_of,
)
from pytorch.runner import FileResult, Settings, run  # noqa: E402

BUILD = ROOT / "build" / "pytorch"
SHOWN = 40
"""The number of problems that are printed. The file has all of them."""


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python tests/pytorch",
        description="PyTorch's own device-generic tests on this device.",
        epilog=f"{source.VARIABLE} names a checkout or a source package of the installed PyTorch.",
    )
    parser.add_argument("files", nargs="*", help="paths below PyTorch's test/, or patterns of them")
    parser.add_argument("-k", dest="choose", default="", help="the tests to run, as for pytest")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="files at once")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one test (300)")
    parser.add_argument(
        "--bypass", action="store_true", help="also run what PyTorch restricts to other devices"
    )
    parser.add_argument(
        "--known",
        type=Path,
        action="append",
        help="entries in place of known.toml; may be repeated",
    )
    parser.add_argument(
        "--out", type=Path, help="what was seen, as JSON (pytorch-tests.json if all files are run)"
    )
    parser.add_argument("--logs", type=Path, default=BUILD, help="a folder (build/pytorch)")
    parser.add_argument("--list", action="store_true", help="name the files, and run nothing")
    return parser.parse_args()


def chosen(patterns: list[str], files: list[str], where: source.Source) -> list[str]:
    """Return the files that the command line selects.

    Raises:
        Mistake: A pattern matches no file.
    """
    for pattern in patterns:
        if not any(fnmatchcase(file, pattern) for file in files):
            raise Mistake(f"no file with tests of devices in {where.folder} is called '{pattern}'")
    return [file for file in files if any(fnmatchcase(file, one) for one in patterns or ["*"])]


def print_result(result: FileResult) -> None:
    """Print one line about a file."""
    counts: dict[str, int] = {}
    for one in result.results.values():
        counts[one.outcome] = counts.get(one.outcome, 0) + 1
    words = ", ".join(f"{number} {word}" for word, number in sorted(counts.items()))
    words = result.broken or words or "no tests of devices"
    print(f"{result.file}: {words} ({result.seconds:g} s)", flush=True)


def main() -> int:
    """Run the files. The status is 0 without problems, 1 with problems, 2 for a user's mistake."""
    given = options()
    try:
        return gated(given)
    except Mistake as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        return 2


def gated(given: argparse.Namespace) -> int:
    """Run the selected files, and return the status.

    Raises:
        Mistake: A file or an option of the command line is wrong.
    """
    known_files = tuple(given.known or KNOWN)
    for path in given.known or ():
        if not path.is_file():
            raise Mistake(f"--known names {path}, which does not exist")
    if given.jobs < 1 or given.timeout <= 0:
        raise Mistake("--jobs and --timeout must be larger than 0")
    entries = read(known_files)
    import torch
    from backend import ENV_PREFIX
    from conformance.evidence import versions

    where = source.find(os.environ.get(source.VARIABLE, ""), torch.__version__, given.logs)
    files = where.files()
    mine = chosen(given.files, files, where)
    known = Expectations(entries, release_of(torch.__version__))
    left_out = {file: reason for file in mine if (reason := known.left_out(file))}
    if given.list:
        for file in mine:
            print(f"{file}: left out: {left_out[file]}" if file in left_out else file)
        return 0
    settings = Settings(
        folder=where.folder,
        build=given.logs.resolve(),
        known=tuple(path.resolve() for path in known_files),
        environment={f"{ENV_PREFIX}_FALLBACK": os.environ.get(f"{ENV_PREFIX}_FALLBACK", "silent")},
        timeout=given.timeout,
        jobs=given.jobs,
        choose=given.choose,
        bypass=given.bypass,
    )
    results = run([file for file in mine if file not in left_out], settings, print_result)
    results += [FileResult(file, left_out=reason) for file, reason in left_out.items()]
    whole = not given.files and not given.choose
    told = gate.document(results, known, files, whole)
    if whole:
        told["stale"] += arrived(entries, oldest_release())
    told |= {"versions": versions(), "source": where.version, "bypass": given.bypass}
    rule = whole and bool(where.version)
    told["problems"] = gate.problems(told, rule)
    out = given.out or (ROOT / "pytorch-tests.json" if whole else None)
    if out is not None:
        out.write_text(json.dumps(told, indent=0, sort_keys=True), "utf-8")
    return summarised(told, rule)


def oldest_release() -> tuple[int, int]:
    """Return the oldest PyTorch that this project supports, from pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    found = re.search(r'"torch>=(\d+)\.(\d+)', text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def summarised(told: dict[str, object], rule: bool) -> int:
    """Print the problems and the share of a run, and return its status."""
    problems: list[str] = told["problems"]  # type: ignore[assignment]
    for sentence in problems[:SHOWN]:
        print(sentence)
    if len(problems) > SHOWN:
        print(f"... and {len(problems) - SHOWN} more")
    if not told["source"]:
        print(
            f"{source.VARIABLE} is not set: these are the tests that can be made of PyTorch's wheel"
            " alone, and L3's rule is not evaluated"
        )
    print(f"{told['share']:.1%} of the tests that ran have passed" + ("" if rule else ", of these"))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
