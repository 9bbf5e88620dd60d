"""Names that code for torch.cuda and torch.xpu uses on a device module."""

from __future__ import annotations

import importlib
import re

import pytest
import torch
from backend import DEVICE, PACKAGE, backend
from support import computed_dtypes

ABSENT = importlib.import_module(f"{PACKAGE}._absent")


def test_bfloat16_is_supported_if_it_was_chosen() -> None:
    assert backend.is_bf16_supported() is (torch.bfloat16 in computed_dtypes())
    assert backend.is_bf16_supported(including_emulation=False) is backend.is_bf16_supported()
    assert backend.is_tf32_supported() is False
    assert backend.is_current_stream_capturing() is False
    assert backend.get_allocator_backend() == "native"


def test_out_of_memory_is_pytorchs_own_error() -> None:
    assert backend.OutOfMemoryError is torch.OutOfMemoryError


def test_stream_gives_a_stream_context() -> None:
    assert isinstance(backend.stream(None), backend.StreamContext)
    with backend.StreamContext(backend.Stream()) as nothing:
        assert nothing is None
        assert backend.current_stream() != backend.default_stream()
    assert backend.current_stream() == backend.default_stream()


@pytest.mark.parametrize("name", ABSENT.NOT_YET)
def test_the_error_for_an_unsupported_name_says_so(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'{name}': not supported yet"):
        getattr(backend, name)
    assert not hasattr(backend, name)
    assert name not in dir(backend)


# The error for a name of an absent feature has the command that adds the feature.
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in ABSENT.INSTEAD
        if name not in ABSENT.FEATURES or ABSENT.FEATURES[name].enabled
    ],
)
def test_the_error_for_an_absent_name_has_an_alternative(name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(ABSENT.INSTEAD[name])):
        getattr(backend, name)


@pytest.mark.parametrize("name", sorted(set(torch.cuda.__all__)))
def test_every_name_of_cuda_exists_or_has_an_explanation(name: str) -> None:
    if name in dir(backend):
        return
    with pytest.raises(AttributeError) as raised:
        getattr(backend, name)
    assert not str(raised.value).endswith(f"has no attribute {name!r}")


def test_the_error_for_typed_storages_names_untyped_ones() -> None:
    with pytest.raises(AttributeError, match=r"use torch\.UntypedStorage"):
        _ = backend.FloatStorage
    assert torch.UntypedStorage(8, device=DEVICE).nbytes() == 8
