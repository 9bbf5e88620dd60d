"""Names of features that this project was generated without, on the device module."""

from __future__ import annotations

import importlib

import pytest
from backend import DEVICE, PACKAGE, backend

FEATURES = importlib.import_module(f"{PACKAGE}._features").FEATURES
ROW = type(next(iter(FEATURES.values())))
ABSENT = importlib.import_module(f"{PACKAGE}._absent")


def names_of(enabled: bool) -> list[tuple[str, str]]:
    return [
        (feature, name)
        for feature, row in FEATURES.items()
        for name in row.provides
        if row.enabled is enabled
    ]


def test_names_of_enabled_features_are_there() -> None:
    missing = [name for _, name in names_of(enabled=True) if not hasattr(backend, name)]
    assert not missing


def test_a_name_of_a_feature_left_out_says_how_to_add_it(monkeypatch: pytest.MonkeyPatch) -> None:
    invented = {"one": ROW(enabled=False, provides=("first",))}
    monkeypatch.setattr(ABSENT, "FEATURES", FEATURES | invented)
    for feature, name in [*names_of(enabled=False), ("one", "first")]:
        if name in dir(backend):
            continue  # The core has its own version.
        assert not hasattr(backend, name)
        with pytest.raises(AttributeError) as error:
            getattr(backend, name)
        assert str(error.value) == (
            f"{DEVICE} was generated without {feature}, which brings {name}; "
            f"add it with: torchsmith add {feature}"
        )


def test_a_feature_that_is_there_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ABSENT, "FEATURES", {"one": ROW(enabled=True, provides=("first",))})
    with pytest.raises(AttributeError, match="has no attribute 'first'"):
        _ = backend.first
