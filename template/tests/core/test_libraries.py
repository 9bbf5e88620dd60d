"""The installed shared libraries: their search paths, and that they find other libraries."""

from __future__ import annotations

import importlib
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from backend import DEVICE, PACKAGE
from support import WITHOUT_AUTOLOAD, run_python

FOLDERS = [Path(folder) for folder in importlib.import_module(PACKAGE).__path__]
LIBRARIES = sorted(path for folder in FOLDERS for path in folder.rglob("*.so"))

LOADED, DYNAMIC = 1, 2  # kinds of segments
STRINGS, RPATH, RUNPATH = 5, 15, 29  # kinds of entries of the dynamic segment


def searched(library: Path) -> Iterator[str]:
    """Yield the folders in which a library, a 64-bit ELF file, searches for libraries."""
    image = library.read_bytes()
    assert image[:6] == b"\x7fELF\x02\x01"
    (table,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    headers = [struct.unpack_from("<IIQQQQ", image, table + i * size) for i in range(count)]
    (dynamic,) = [(offset, held) for kind, _, offset, _, _, held in headers if kind == DYNAMIC]
    entries = list(struct.iter_unpack("<QQ", image[dynamic[0] : sum(dynamic)]))
    (address,) = [value for kind, value in entries if kind == STRINGS]
    (strings,) = [
        offset + address - start
        for kind, _, offset, start, _, held in headers
        if kind == LOADED and start <= address < start + held
    ]
    for kind, value in entries:
        if kind in (RPATH, RUNPATH):
            begin = strings + value
            yield from image[begin : image.index(b"\0", begin)].decode().split(":")


def test_there_are_three_libraries() -> None:
    assert {path.name.partition(".")[0] for path in LIBRARIES} >= {
        "_C",
        f"lib{PACKAGE}",
        f"lib{DEVICE}_device",
    }


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_search_paths_are_relative_to_the_package(library: Path) -> None:
    # On another machine, any user may own a folder with a path of the build machine.
    folders = list(searched(library))
    assert [folder for folder in folders if not folder.startswith("$ORIGIN")] == []


def test_a_copy_of_the_package_in_another_folder_works(tmp_path: Path) -> None:
    for folder in FOLDERS:
        shutil.copytree(folder, tmp_path / PACKAGE, dirs_exist_ok=True)
    run_python(
        f"""
        import sys
        # The finders of an editable install would find the package elsewhere.
        sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__.lower()]
        sys.path.insert(0, {str(tmp_path)!r})
        import {PACKAGE}, torch
        assert {PACKAGE}._C.__file__.startswith({str(tmp_path)!r})
        dtype = torch.{DEVICE}.supported_dtypes()[0]
        assert torch.ones(2, 2, dtype=dtype, device="{DEVICE}").cpu().all()
        """,
        WITHOUT_AUTOLOAD,
    )
