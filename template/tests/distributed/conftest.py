"""Groups of processes that a module's tests share: starting one takes longer than what it does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed.ranks import Ranks, ranks


@pytest.fixture(
    scope="module",
    params=[2, pytest.param(3, marks=pytest.mark.full), pytest.param(4, marks=pytest.mark.full)],
)
def group(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ranks]:
    """2 processes; every night 3 and 4 as well."""
    with ranks(request.param, tmp_path_factory.mktemp("ranks")) as started:
        yield started


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """2 processes, of ``init_process_group()`` without a backend."""
    with ranks(2, tmp_path_factory.mktemp("pair"), None) as started:
        yield started
