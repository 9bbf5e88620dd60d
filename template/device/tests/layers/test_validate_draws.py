"""The layer `validate` over draws whose parameters are arrays."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from device_library import needs
from making import Make

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def validated(api: ModuleType, restored_layers: None) -> None:
    needs("draw")
    api.set_layers(["validate"])


def test_wrong_parameters_of_draws_are_refused(
    api: ModuleType, refuses: Function, make: Make, stream: Any
) -> None:
    def view(*sizes: int, dtype: str = "float32", buffer: Any = None) -> Any:
        owner = buffer if buffer is not None else make.buffer(256)
        return owner.view(0, api.DType[dtype], list(sizes), [sizes[-1], 1] if sizes else [])

    gamma, binomial, none = api.DrawOp.gamma, api.DrawOp.binomial, api.PhiloxState(1, 2)
    out, a = view(2, 4), view(2, 4)
    assert api.draw(stream, gamma, out, a, None, none) is None
    assert api.draw(stream, binomial, out, a, view(2, 4), none) is None
    says = "not of out's sizes and type"
    refuses(api.draw, stream, gamma, out, view(2, 3), None, none, says=says)
    refuses(api.draw, stream, binomial, out, a, view(2, 4, dtype="float64"), none, says=says)
    says = "not the parameters of the operation"
    refuses(api.draw, stream, gamma, out, a, a, none, says=says)
    refuses(api.draw, stream, binomial, out, a, None, none, says=says)
    refuses(api.draw, stream, gamma, out, out, None, none, says="a float32.* overlaps out")
    number = view()
    refuses(api.draw, stream, api.DrawOp.dirichlet, number, view(), None, none, says="no rows")
    address = api.allocate(0, 8)
    where = api.PhiloxState(1, 0, address)
    refuses(api.draw, stream, gamma, out, a, None, where, says="philox.address 0x.* reaches 8")
    api.deallocate(0, address)
