"""Other processes for the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from backend import DEVICE, backend
from ipc import remote
from ipc.partner import Partner


@pytest.fixture(autouse=True, scope="module")
def device_shares_memory() -> None:
    """Skip what a device without the functions for it cannot do."""
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
    """Another process, of which nothing is left for the next test but itself."""
    yield _shared_partner
    _shared_partner.call(remote.forget)


@pytest.fixture
def start() -> Iterator[Callable[[], Partner]]:
    """Starts processes, for tests that end them or need several."""
    started: list[Partner] = []

    def start() -> Partner:
        started.append(Partner())
        return started[-1]

    yield start
    for partner in started:
        partner.close()


@pytest.fixture
def allocated() -> Callable[[], int]:
    """Returns what tensors of this process have, in bytes, after a collect."""

    def allocated() -> int:
        backend.ipc_collect()
        return int(backend.memory_allocated(DEVICE))

    return allocated
