"""Prints entries for all undeclared failures of a run, to be examined one by one:

python tests/pytorch/draft.py >> tests/operators/pytorch.toml
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
TABLES = {"fail": "xfail", "crash": "skip", "timeout": "skip"}
"""Failing tests still run. Tests that end their process do not."""

Group = tuple[str, str, str, str]


def groups(document: dict[str, Any]) -> dict[Group, list[str]]:
    """Return the names of undeclared failures by table, file, class and message.

    Messages that differ only in numbers count as the same.
    """
    found: dict[Group, list[str]] = {}
    for file, row in document["files"].items():
        for test, cell in row["tests"].items():
            if table := TABLES.get(cell["verdict"]):
                group, _, name = test.partition("::")
                said = (cell.get("reason") or cell["verdict"]).splitlines()[0]
                key = (table, file, group, re.sub(r"\d+", "N", said))
                found.setdefault(key, []).append(name)
    return found


def drafted(document: dict[str, Any]) -> str:
    """Return the entries as TOML. Strings are written as JSON, which is valid TOML."""
    lines = []
    for (table, file, group, said), names in sorted(groups(document).items()):
        tests = "".join(f"  {json.dumps(name)},\n" for name in sorted(names))
        lines += [
            f"[[{table}]]",
            f"files = [{json.dumps(file)}]",
            f"classes = [{json.dumps(group)}]",
            f"tests = [\n{tests}]",
            f"reason = {json.dumps(f'to be looked into: {said}')}",
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seen", nargs="?", type=Path, default=PROJECT / "pytorch-tests.json")
    given = parser.parse_args()
    if not given.seen.is_file():
        parser.error(f"{given.seen} does not exist: `python tests/pytorch` writes it")
    print(drafted(json.loads(given.seen.read_text("utf-8"))))


if __name__ == "__main__":
    main()
