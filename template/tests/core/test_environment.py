"""Environment variables: what is wrong with a value is said at import, whoever reads it later."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from backend import ENV_PREFIX
from support import is_simulator, run_python

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "environment.md", *(DOCS / "features").glob("*.md")]
OF_THE_TESTS = {"TEST_FALLBACK", "DEVICE"}
WRONG = {"CACHE_FOLDER": "/dev/null/folder", "FALLBACK": "loudly"}
"""The others are names from a list, or numbers."""
VARIABLES = sorted(
    set(
        name
        for page in PAGES
        for name in re.findall(
            rf"^\| `{ENV_PREFIX}_(\w+)` \|", page.read_text().split("CMake")[0], re.MULTILINE
        )
    )
    - OF_THE_TESTS
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                name.startswith("SIMULATOR") and not is_simulator(), reason="nothing reads it"
            ),
        )
        for name in VARIABLES
    ],
)
def test_a_wrong_value_is_told_at_import(name: str) -> None:
    value = WRONG.get(name, "wrong")
    ended = run_python("import torch", {f"{ENV_PREFIX}_{name}": value}, check=False)
    told = [line for line in ended.stderr.splitlines() if f"{ENV_PREFIX}_{name}" in line]
    assert told and any(value in line for line in told), ended.stderr
