"""Writes docs/operators.md and docs/operators.html from conformance.json.

    python tests/conformance/report.py [conformance.json]

Needs neither PyTorch nor the backend.
"""

from __future__ import annotations

import argparse
import html
import json
from collections import Counter
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
ASPECTS = {
    "forward": "forward",
    "noncontiguous": "strided",
    "out": "out=",
    "in_place": "in-place",
    "backward": "backward",
    "autocast": "autocast",
    "layout": "layout",
    "views": "views",
    "strides": "strides",
    "strides_backward": "backward of strides",
    "ranks": "ranks",
    "repeated": "repeated",
    "nonfinite": "NaN, inf",
    "memory": "extra bytes",
    "expanded_input": "expanded in-place",
    "expanded_output": "expanded out=",
    "other_output": "other out=",
    "errors": "errors",
}
"""The aspects and the titles of their columns."""

ROUTES = ("native", "composite", "fallback", "unsupported", "failed")
LEGEND = {
    "native": "one kernel of this backend; for gradients, only such kernels",
    "composite": "PyTorch makes it of other operators",
    "fallback": "something of it ran on the CPU",
    "unsupported": "known not to work here, with a reason",
    "failed": "differs from the CPU, or crashes",
}

EXTRA = (
    "Extra bytes are the largest peak of device memory above arguments and results, as a multiple of"
    " these; one of more than 3 fails."
)

Cell = dict[str, Any]
Results = dict[str, dict[str, dict[str, Cell]]]


def verdict(cell: Cell) -> str:
    """Return the verdict of one operator, dtype and aspect; empty if it does not apply."""
    if cell["kind"] == "pass":
        return str(cell["route"])
    if cell["kind"] == "skip":
        return "unsupported" if "which the backend lacks" in cell.get("reason", "") else ""
    return "unsupported" if cell.get("category") else "failed"


def totals(results: Results) -> dict[str, Counter[str]]:
    """Count the verdicts of each aspect."""
    counted: dict[str, Counter[str]] = {aspect: Counter() for aspect in ASPECTS}
    for dtypes in results.values():
        for aspects in dtypes.values():
            for aspect, cell in aspects.items():
                if word := verdict(cell):
                    counted[aspect][word] += 1
    return counted


def kinds(results: Results) -> Counter[str]:
    """Count the outcomes that are not declared, by kind."""
    return Counter(
        cell["kind"]
        for dtypes in results.values()
        for aspects in dtypes.values()
        for cell in aspects.values()
        if not cell.get("category")
    )


def pairs(results: Results) -> Counter[str]:
    """Count the pairs of operator and dtype that pass on the CPU, by the outcome on the device.

    ``passed``, ``failed``, or ``dtype`` where the result is of a dtype that the backend lacks.
    """
    count: Counter[str] = Counter()
    for dtypes in results.values():
        for aspects in dtypes.values():
            cell = aspects.get("forward")
            word = verdict(cell) if cell else ""
            if cell and cell["kind"] == "skip" and word:
                count["dtype"] += 1
            elif word:
                count["failed" if word in ("unsupported", "failed") else "passed"] += 1
    return count


def summary(document: dict[str, Any]) -> list[str]:
    """Return the sentences on top of the page."""
    results, versions = document["results"], document["versions"]
    pair, count = pairs(results), kinds(results)
    cpu = pair["passed"] + pair["failed"]
    native, computed = (document["overloads"][key] for key in ("native", "computed"))
    return [
        f"{pair['passed']} of the {cpu} pairs of operator and dtype that pass on the CPU pass on"
        f" {versions['backend']} ({pair['passed'] / max(cpu, 1):.1%}), over all samples of PyTorch's own table;"
        f" {count['wrong']} wrong results, {count['crash']} crashes. {pair['dtype']} more pairs give results"
        " of a dtype that the backend was generated without.",
        f"{native} of the {computed} overloads that PyTorch's CPU backend computes, and makes of no others,"
        " have a kernel of this backend.",
        f"Made on {versions['date']} from {versions['package']} on the device {versions['device']},"
        f" PyTorch {versions['torch']}, Python {versions['python']}, {versions['machine']};"
        f" dtypes {', '.join(versions['dtypes'])}.",
    ]


def cell_text(dtypes: dict[str, dict[str, Cell]], aspect: str) -> str:
    """Return the verdicts of an operator's dtypes for one aspect, as in ``native 9, fallback 2``."""
    words = Counter(
        word
        for aspects in dtypes.values()
        if aspect in aspects
        for word in [verdict(aspects[aspect])]
    )
    text = ", ".join(f"{word} {words[word]}" for word in ROUTES if words[word])
    extra = [
        aspects[aspect]["extra"]
        for aspects in dtypes.values()
        if "extra" in aspects.get(aspect, {})
    ]
    return f"{text}, {max(extra)} x" if extra else text


def reasons(results: Results) -> dict[str, list[str]]:
    """Return the unsupported tests by reason."""
    found: dict[str, list[str]] = {}
    for operator, dtypes in results.items():
        for dtype, aspects in dtypes.items():
            for aspect, cell in aspects.items():
                if verdict(cell) == "unsupported":
                    found.setdefault(cell["reason"], []).append(f"{operator} {dtype} {aspect}")
    return found


def markdown(document: dict[str, Any]) -> str:
    """Return docs/operators.md."""
    results: Results = document["results"]
    lines = ["# Operators", ""]
    for sentence in summary(document):
        lines += [sentence, ""]
    lines += [
        "Written by `python tests/conformance/report.py` from what `pytest -m conformance_full`"
        " saw; [the same with search and dtypes](operators.html).",
        "",
        "| | " + " | ".join(ROUTES) + " |",
        "|---" * (len(ROUTES) + 1) + "|",
    ]
    for aspect, counted in totals(results).items():
        numbers = " | ".join(str(counted[word]) for word in ROUTES)
        lines.append(f"| {ASPECTS[aspect]} | {numbers} |")
    lines += ["", *(f"- {word}: {meaning}" for word, meaning in LEGEND.items()), "", EXTRA, ""]
    lines += ["## Not supported, and why", ""]
    for reason, where in sorted(reasons(results).items()):
        operators = sorted({text.split()[0] for text in where})
        shown = ", ".join(f"`{name}`" for name in operators)
        lines.append(f"- {reason}: {shown} ({len(where)} tests)")
    lines += ["", "## Each operator", "", "Numbers count dtypes.", ""]
    lines.append("| operator | " + " | ".join(ASPECTS.values()) + " |")
    lines.append("|---" * (len(ASPECTS) + 1) + "|")
    for operator, dtypes in sorted(results.items(), key=lambda item: item[0].lower()):
        cells = " | ".join(cell_text(dtypes, aspect) for aspect in ASPECTS)
        lines.append(f"| `{operator}` | {cells} |")
    return "\n".join(lines) + "\n"


def page(document: dict[str, Any]) -> str:
    """Return docs/operators.html, which needs no other file."""
    results: Results = document["results"]
    rows = []
    for operator, dtypes in sorted(results.items(), key=lambda item: item[0].lower()):
        cells = {
            dtype: [
                [
                    ROUTES.index(word),
                    cell.get("fallbacks", []),
                    cell.get("reason", ""),
                    cell.get("extra"),
                ]
                if (cell := aspects.get(aspect)) and (word := verdict(cell))
                else 0
                for aspect in ASPECTS
            ]
            for dtype, aspects in dtypes.items()
        }
        rows.append([operator, cells])
    data = {
        "routes": ROUTES,
        "aspects": list(ASPECTS.values()),
        "dtypes": document["versions"]["dtypes"],
        "rows": rows,
    }
    counted = totals(results)
    total = "".join(
        f"<tr><th scope=row>{html.escape(ASPECTS[aspect])}</th>"
        + "".join(f"<td>{counted[aspect][word]}</td>" for word in ROUTES)
        + "</tr>"
        for aspect in ASPECTS
    )
    legend = (
        "".join(
            f"<dt><b class=r{i}>{word}</b></dt><dd>{html.escape(LEGEND[word])}</dd>"
            for i, word in enumerate(ROUTES)
        )
        + f"<dt>extra bytes</dt><dd>{html.escape(EXTRA)}</dd>"
    )
    why = "".join(
        f"<li>{html.escape(reason)}: "
        + html.escape(", ".join(sorted({text.split()[0] for text in where})))
        + "</li>"
        for reason, where in sorted(reasons(results).items())
    )
    replacements = {
        "@TITLE@": html.escape(f"Operators of {document['versions']['backend']}"),
        "@SUMMARY@": "".join(f"<p>{html.escape(text)}</p>" for text in summary(document)),
        "@TOTALS@": total,
        "@ROUTES@": "".join(f"<th scope=col>{word}</th>" for word in ROUTES),
        "@LEGEND@": legend,
        "@REASONS@": f"<ul>{why}</ul>" if why else "<p>Nothing.</p>",
        "@DATA@": json.dumps(data, separators=(",", ":")).replace("</", "<\\/"),
    }
    return filled(Path(__file__).with_name("page.html"), replacements)


def filled(page: Path, replacements: dict[str, str]) -> str:
    """Return a page with its placeholders replaced."""
    text = page.read_text("utf-8")
    for name, value in replacements.items():
        text = text.replace(name, value)
    return text


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files, and print where they are."""
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
        print(folder / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("evidence", nargs="?", type=Path, default=PROJECT / "conformance.json")
    parser.add_argument("--out", type=Path, default=PROJECT / "docs", help="folder to write to")
    options = parser.parse_args()
    document = json.loads(options.evidence.read_text("utf-8"))
    write(options.out, {"operators.md": markdown(document), "operators.html": page(document)})


if __name__ == "__main__":
    main()
