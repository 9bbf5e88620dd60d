"""Environment variables: the import fails for a wrong value, also of a variable read later."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from backend import DEVICE, ENV_PREFIX
from support import has_function, is_simulator, run_python

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "environment.md", *(DOCS / "features").glob("*.md")]
OF_THE_TESTS = {"TEST_FALLBACK", "DEVICE", "DEVICE_LIBRARY"}
WRONG = {"CACHE_FOLDER": "/dev/null/folder", "FALLBACK": "loudly"}
"""Wrong values; for other variables "wrong" is one, as they are names or numbers."""
REPORTED = ("CACHE_FOLDER", "LAUNCH_BLOCKING")
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
                (name.startswith("SIMULATOR") and not is_simulator())
                or (name == "CACHE_FOLDER" and not has_function("plans", "set_cache_folder")),
                reason="this device does not read it",
            ),
        )
        for name in VARIABLES
    ],
)
def test_a_wrong_value_fails_the_import(name: str) -> None:
    """A variable of the simulator's library is reported, and each use of the device fails."""
    value = WRONG.get(name, "wrong")
    ended = run_python("import torch", {f"{ENV_PREFIX}_{name}": value}, check=False)
    told = [line for line in ended.stderr.splitlines() if f"{ENV_PREFIX}_{name}" in line]
    assert any(value in line for line in told), ended.stderr
    if name in REPORTED or name.startswith("SIMULATOR"):
        assert ended.returncode == 0, ended.stderr
    else:
        assert told[0].startswith("ImportError: "), ended.stderr
    if name != "CACHE_FOLDER":
        use = f"import torch; torch.ones(1, device='{DEVICE}')"
        used = run_python(use, {f"{ENV_PREFIX}_{name}": value}, check=False)
        assert used.returncode != 0
