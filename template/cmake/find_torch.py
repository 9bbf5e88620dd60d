"""Prints `<folder>;<version>` of the installed PyTorch without importing it; fails if there is none."""

import importlib.util
import re
import sys
from pathlib import Path


def find_torch() -> tuple[Path, str] | None:
    """The folder of the installed package and its version, or None."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    match = re.search(r"__version__ = '([^']+)'", (folder / "version.py").read_text())
    return (folder, match[1]) if match else None


if __name__ == "__main__":
    found = find_torch()
    if found is None:
        sys.exit("PyTorch is not installed")
    print(*found, sep=";")
