"""Fixtures of the tests of the layer `validate`."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import making
import pytest

make = making.make


@pytest.fixture
def refuses(api: ModuleType) -> Callable[..., None]:
    """Asserts that a call is rejected with a message that contains these parts."""

    def refuse(function: Callable[..., object], *arguments: object, says: str) -> None:
        with pytest.raises(api.DeviceError, match=says) as caught:
            function(*arguments)
        assert caught.value.code is api.ErrorCode.INVALID_ARGUMENT

    return refuse
