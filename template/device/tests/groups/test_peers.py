"""Access to another device's memory."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

GROUP = "peers"
VALUES = np.arange(1000, dtype=np.int32)


def test_a_kernel_reads_a_peers_memory(
    api: ModuleType, stream: Any, second_device: int, make_buffer: Callable[..., Any]
) -> None:
    if not api.can_access_peer(0, second_device):
        pytest.skip("the two devices cannot be peers")
    api.enable_peer_access(0, second_device)
    api.enable_peer_access(0, second_device)
    near, far = make_buffer(VALUES.nbytes), make_buffer(VALUES.nbytes, second_device)
    far.write(VALUES.view(np.uint8))
    views = [buffer.view(0, api.DType.int32, [1000], [1]) for buffer in (near, far)]
    reason = api.copy(stream, *views)
    if reason is not None:
        pytest.skip(f"the device does not copy whole numbers: {reason}")
    api.synchronize(stream)
    assert (np.frombuffer(near.read(), np.int32) == VALUES).all()


def test_a_device_is_not_its_own_peer(api: ModuleType) -> None:
    assert not api.can_access_peer(0, 0)
    with pytest.raises(api.DeviceError) as caught:
        api.enable_peer_access(0, 0)
    assert caught.value.code is api.ErrorCode.INVALID_ARGUMENT
