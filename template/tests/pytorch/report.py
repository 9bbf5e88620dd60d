"""Writes docs/pytorch-tests.md and docs/pytorch-tests.html from pytorch-tests.json.

    python tests/pytorch/report.py [pytorch-tests.json]

Needs neither PyTorch nor the backend.
"""

from __future__ import annotations

import argparse
import html
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "tests"))

from conformance.report import filled, write  # noqa: E402
from pytorch.gate import FAILED, L3, RAN, VERDICTS, share  # noqa: E402

MEANING = {
    "pass": "as PyTorch wants it",
    "fail": "not so, and not declared",
    "crash": "ended its process",
    "timeout": "was ended after the time that a test may take",
    "xfail": "fails, which is declared with a reason",
    "stale": "passes, although it is declared to fail",
    "skip": "did not run: PyTorch, the dtypes of this backend or a declaration leave it out",
    "expected": "fails, which PyTorch itself declares",
}
SHOWN = ("fail", "crash", "timeout", "xfail", "stale")
"""The verdicts whose tests are named one by one."""


def summary(document: dict[str, Any]) -> list[str]:
    """Return the sentences on top of the page."""
    versions, totals = document["versions"], Counter(document["totals"])
    ran = sum(totals[verdict] for verdict in RAN)
    passed = totals["pass"] + totals["stale"]
    source = document["source"]
    if source:
        rule = "holds" if document["share"] > L3 else "does not hold"
        whole = document["whole"]
        verdict = f" L3's rule, more than {L3:.0%}, {rule}." if whole else ""
        first = (
            f"{passed} of the {ran} tests of PyTorch {source} that ran passed on"
            f" {versions['backend']} ({share(totals):.1%}).{verdict}"
            + ("" if whole else " Only some of its tests were asked for.")
        )
    else:
        first = (
            f"{passed} of the {ran} tests that ran passed on {versions['backend']}"
            f" ({share(totals):.1%}). They are made of what PyTorch's wheel has of its tests;"
            " PyTorch's own files were not there, so L3's rule is not evaluated."
        )
    counted = (
        "What ran is what passed, failed, crashed, took too long or failed as declared. Not counted are"
        f" {totals['skip']} that did not run, and {totals['expected']} that PyTorch itself expects to fail."
    )
    return [
        first,
        counted,
        f"Made on {versions['date']} from {versions['package']} on the device {versions['device']},"
        f" PyTorch {versions['torch']}, Python {versions['python']}, {versions['machine']};"
        f" dtypes {', '.join(versions['dtypes'])}.",
    ]


def note(row: dict[str, Any]) -> str:
    """Return why a file has no tests, or not all of them."""
    return row["broken"] or (f"left out: {row['left_out']}" if row["left_out"] else "")


def declared(document: dict[str, Any]) -> Counter[str]:
    """Count the tests that fail as declared, by reason."""
    return Counter(
        cell["declared"]
        for row in document["files"].values()
        for cell in row["tests"].values()
        if cell["verdict"] == "xfail"
    )


def skipped(row: dict[str, Any]) -> Counter[str]:
    """Count the tests of a file that did not run, by reason."""
    return Counter(
        cell.get("reason", "") for cell in row["tests"].values() if cell["verdict"] == "skip"
    )


def markdown(document: dict[str, Any]) -> str:
    """Return docs/pytorch-tests.md."""
    lines = ["# PyTorch's own tests", ""]
    for sentence in summary(document):
        lines += [sentence, ""]
    lines += [
        "Written by `python tests/pytorch/report.py` from what `python tests/pytorch` saw;"
        " [the same with each test that does not pass](pytorch-tests.html).",
        "",
        "| file | passed | " + " | ".join(VERDICTS) + " | |",
        "|---" * (len(VERDICTS) + 3) + "|",
    ]
    for file, row in document["files"].items():
        counts = Counter(row["counts"])
        numbers = " | ".join(str(counts[verdict] or "") for verdict in VERDICTS)
        part = f"{share(counts):.1%}" if any(counts[verdict] for verdict in RAN) else ""
        lines.append(f"| `{file}` | {part} | {numbers} | {note(row).replace('|', '/')} |")
    lines += ["", *(f"- {word}: {meaning}" for word, meaning in MEANING.items()), ""]
    lines += ["## Declared to fail, and why", ""]
    lines += [
        f"- {reason} ({number} tests)" for reason, number in sorted(declared(document).items())
    ]
    lines += ["", "## What stands in the way", ""]
    lines += [f"- {sentence.splitlines()[0]}" for sentence in document["problems"][:100]] or [
        "Nothing."
    ]
    return "\n".join(lines) + "\n"


def page(document: dict[str, Any]) -> str:
    """Return docs/pytorch-tests.html, which needs no other file."""
    rows = []
    for file, row in document["files"].items():
        counts = Counter(row["counts"])
        named = [
            [name, VERDICTS.index(cell["verdict"]), cell.get("declared") or cell.get("reason", "")]
            for name, cell in row["tests"].items()
            if cell["verdict"] in SHOWN
        ]
        left_out = [[reason, number] for reason, number in skipped(row).most_common()]
        rows.append([file, [counts[verdict] for verdict in VERDICTS], note(row), named, left_out])
    totals = Counter(document["totals"])
    data = {"verdicts": VERDICTS, "ran": [VERDICTS.index(item) for item in RAN], "rows": rows}
    legend = "".join(
        f"<dt><b class={'bad' if word in FAILED else word}>{word}</b></dt>"
        f"<dd>{html.escape(meaning)}: {totals[word]}</dd>"
        for word, meaning in MEANING.items()
    )
    why = "".join(
        f"<li>{html.escape(reason)} ({number} tests)</li>"
        for reason, number in sorted(declared(document).items())
    )
    replacements = {
        "@TITLE@": html.escape(f"PyTorch's own tests on {document['versions']['backend']}"),
        "@SUMMARY@": "".join(f"<p>{html.escape(text)}</p>" for text in summary(document)),
        "@LEGEND@": legend,
        "@REASONS@": f"<ul>{why}</ul>" if why else "<p>Nothing.</p>",
        "@DATA@": json.dumps(data, separators=(",", ":")).replace("</", "<\\/"),
    }
    return filled(Path(__file__).with_name("page.html"), replacements)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seen", nargs="?", type=Path, default=PROJECT / "pytorch-tests.json")
    parser.add_argument("--out", type=Path, default=PROJECT / "docs", help="folder to write to")
    options = parser.parse_args()
    if not options.seen.is_file():
        parser.error(f"{options.seen} does not exist: `python tests/pytorch` writes it")
    document = json.loads(options.seen.read_text("utf-8"))
    pages = {"pytorch-tests.md": markdown(document), "pytorch-tests.html": page(document)}
    write(options.out, pages)


if __name__ == "__main__":
    main()
