"""Fixtures with other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from backend import backend
from ipc import remote
from ipc.partner import Partner


@pytest.fixture(autouse=True, scope="module")
def device_shares_memory() -> None:
    """Skip the tests on a device that cannot share memory."""
    if not backend._C.ipc_has_memory():
        pytest.skip("the device library has no export_memory, open_memory and close_memory")
    if torch.float32 not in backend.supported_dtypes():
        pytest.skip("generated without torch.float32")


@pytest.fixture(scope="module")
def _shared_partner() -> Iterator[Partner]:
    partner = Partner()
    yield partner
    partner.close()


@pytest.fixture
def partner(_shared_partner: Partner) -> Iterator[Partner]:
    """Another process, shared by the tests of a module. It drops its objects after each test."""
    yield _shared_partner
    _shared_partner.call(remote.forget)


@pytest.fixture
def start() -> Iterator[Callable[[], Partner]]:
    """Return a function that starts processes, for tests that end them or need several."""
    started: list[Partner] = []

    def start() -> Partner:
        started.append(Partner())
        return started[-1]

    yield start
    for partner in started:
        partner.close()
