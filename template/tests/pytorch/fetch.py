"""Fetches the test files of the installed PyTorch from its repository, without its history:

python tests/pytorch/fetch.py ../pytorch
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

REPOSITORY = "https://github.com/pytorch/pytorch"
FOLDERS = ("test", "tools")


def fetch(repository: str, tag: str, folder: Path) -> None:
    """Check out the folders that the tests need, and the files of the root, such as version.txt.

    Raises:
        subprocess.CalledProcessError: git failed, and has printed why.
    """
    options = ("--depth", "1", "--filter=blob:none", "--sparse", "--branch", tag)
    subprocess.run(["git", "clone", "--quiet", *options, repository, str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "sparse-checkout", "set", *FOLDERS], check=True)


def main() -> int:
    """Fetch the installed release. The status is 2 if git fails or the folder exists."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a new folder, for PYTORCH_SOURCE to name")
    parser.add_argument("--repository", default=REPOSITORY, help="of PyTorch, or a mirror of it")
    given = parser.parse_args()
    if given.folder.exists():
        print(f"error: {given.folder} exists: name a new folder, or remove it", file=sys.stderr)
        return 2
    tag = f"v{version('torch').partition('+')[0]}"
    try:
        fetch(given.repository, tag, given.folder)
    except subprocess.CalledProcessError:
        print(f"error: git could not fetch {tag} of {given.repository}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
