"""Where PyTorch's test files are: a checkout or a source package that PYTORCH_SOURCE names.

They are not in the wheel, and no copy of them is in this project.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytorch.expectations import Mistake, release_of

VARIABLE = "PYTORCH_SOURCE"
HERE = Path(__file__).resolve().parent

MARK = b"instantiate_device_type_tests("
PARTS = ("test", "tools", "version.txt")
"""The parts of PyTorch's tree that the tests read."""


@dataclass(frozen=True)
class Source:
    """A folder of test files. ``version`` is empty for those of this project.

    The project's files, in the folder ``wheel``, need only PyTorch's wheel.
    """

    folder: Path
    version: str = ""

    def files(self) -> list[str]:
        """Return the files with tests for devices, by their paths below the folder, largest first."""
        found = [
            path
            for path in (self.folder if self.version else self.folder / "wheel").rglob("*.py")
            if MARK in path.read_bytes() and path.name not in ("run_test.py", "conftest.py")
        ]
        found.sort(key=lambda path: (-path.stat().st_size, path))
        return [path.relative_to(self.folder).as_posix() for path in found]


def unpacked(package: Path, into: Path) -> Path:
    """Unpack the parts of a source package that tests read, once, and return its root.

    Raises:
        Mistake: The file is not an archive.
    """
    root = into / package.name.partition(".tar")[0]
    if (root / "version.txt").is_file():
        return root
    try:
        with tarfile.open(package) as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                inside = PurePosixPath(*parts[1:])
                if member.isfile() and parts[1:2] and parts[1] in PARTS and ".." not in parts:
                    target = root / inside
                    target.parent.mkdir(parents=True, exist_ok=True)
                    content = archive.extractfile(member)
                    assert content is not None
                    target.write_bytes(content.read())
    except tarfile.TarError as error:
        raise Mistake(
            f"{VARIABLE} names {package}, which is neither a folder nor a tar archive"
        ) from error
    return root


def find(named: str, installed: str, build: Path) -> Source:
    """Return the source that ``named`` names, or that of this project if it is empty.

    Args:
        named: A checkout or a source package of PyTorch, or nothing.
        installed: The version of the installed PyTorch.
        build: Where source packages are unpacked.

    Raises:
        Mistake: The source does not exist, or belongs to another PyTorch.
    """
    if not named:
        return Source(HERE)
    path = Path(named).expanduser().resolve()
    if not path.exists():
        raise Mistake(f"{VARIABLE} names {path}, which does not exist")
    root = path if path.is_dir() else unpacked(path, build)
    version = root / "version.txt"
    if not (root / "test").is_dir() or not version.is_file():
        raise Mistake(
            f"{VARIABLE} names {path}, which is not PyTorch's: it has no folder 'test' beside 'version.txt'"
        )
    theirs = version.read_text("utf-8").strip()
    if release_of(theirs) != release_of(installed):
        raise Mistake(
            f"{VARIABLE} names PyTorch {theirs}, and {installed} is installed: take the tests of the same release"
        )
    return Source(root / "test", theirs)
