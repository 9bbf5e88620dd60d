"""Groups of processes that the tests of a module share, because starting them is slow."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from backend import ENV_PREFIX, PACKAGE
from distributed.ranks import BACKENDS, Ranks, ranks


def has_collectives() -> bool:
    """Return whether the device has collectives without staging."""
    answer: bool = importlib.import_module(f"{PACKAGE}._distributed").has_collectives()
    return answer


@contextmanager
def started(way: str, size: int, folder: Path, backends: str | None) -> Iterator[Ranks]:
    """Start ranks that transfer data by ``way``: "device" or "staged"."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(f"{ENV_PREFIX}_COLLECTIVES", way)
        with ranks(size, folder, backends) as group:
            yield group


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((way, size), marks=[pytest.mark.full] if size > 2 else [], id=f"{way}-{size}")
        for way in ("device", "staged")
        for size in (2, 3, 4)
    ],
)
def group(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ranks]:
    """2 processes; with ``-m full`` also 3 and 4."""
    way, size = request.param
    if way == "device" and not has_collectives():
        pytest.skip("the device library has no collectives")
    with started(way, size, tmp_path_factory.mktemp("ranks"), BACKENDS) as processes:
        yield processes


@pytest.fixture(scope="module", params=["device", pytest.param("staged", marks=pytest.mark.full)])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ranks]:
    """2 processes of ``init_process_group()`` without a backend; with ``-m full`` also staged."""
    way = request.param if has_collectives() else "staged"
    with started(way, 2, tmp_path_factory.mktemp("pair"), None) as processes:
        yield processes
