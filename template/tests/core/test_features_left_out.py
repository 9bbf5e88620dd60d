"""Names of features that this project was generated without, on the device module."""

from __future__ import annotations

import importlib

import pytest
from backend import DEVICE, PACKAGE, backend

FEATURES = importlib.import_module(f"{PACKAGE}._features").FEATURES
ROW = type(next(iter(FEATURES.values())))
ABSENT = importlib.import_module(f"{PACKAGE}._absent")


def test_the_error_for_an_absent_feature_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    invented = {"one": ROW(enabled=False, provides=("first",))}
    monkeypatch.setattr(ABSENT, "FEATURES", FEATURES | invented)
    left_out = [(feature, name) for feature, row in FEATURES.items() for name in row.provides]
    for feature, name in [*left_out, ("one", "first")]:
        if name in dir(backend):
            continue  # The core has its own version.
        assert not hasattr(backend, name)
        with pytest.raises(AttributeError) as error:
            getattr(backend, name)
        assert str(error.value) == (
            f"{DEVICE} was generated without {feature}, which brings {name}; "
            f"add it with: torchsmith add {feature}"
        )


def test_the_error_does_not_offer_an_enabled_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ABSENT, "FEATURES", {"one": ROW(enabled=True, provides=("first",))})
    with pytest.raises(AttributeError, match="has no attribute 'first'"):
        _ = backend.first
