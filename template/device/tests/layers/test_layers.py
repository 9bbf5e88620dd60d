"""The layers above the device, and their order."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

ASK = "import _device; print(*_device.layers(), sep=',')"


@pytest.mark.parametrize("names", ["", "validate", "trace,validate", "validate,trace"])
def test_the_variable_sets_the_layers_and_their_order(
    run_child: Callable[..., Any], names: str
) -> None:
    done = run_child(ASK, DEVICE_LAYERS=names)
    assert done.stdout.strip() == names


def test_an_unknown_layer_is_refused_at_import(
    api: ModuleType, run_child: Callable[..., Any]
) -> None:
    done = run_child("import _device", DEVICE_LAYERS="validate,nonsense")
    assert done.returncode == 1
    sentence = done.stderr.strip().splitlines()[-1]
    assert f"{api.ENV_PREFIX}_DEVICE_LAYERS: 'nonsense' is not a device layer; choose" in sentence
    assert "validate" in sentence.partition("choose from")[2]


def test_a_program_can_set_layers(api: ModuleType, restored_layers: None) -> None:
    api.set_layers(["validate", "trace", "validate"])
    assert api.layers() == ["validate", "trace"]
    with pytest.raises(api.DeviceError, match="'nonsense' is not a device layer; choose from"):
        api.set_layers(["nonsense"])
    assert api.layers() == ["validate", "trace"]


def test_the_first_layer_receives_refused_calls(run_child: Callable[..., Any]) -> None:
    code = """
import _device
try:
    _device.create_stream(-1, 0)
except _device.DeviceError:
    pass
"""
    refused = {
        names: "contract of create_stream" in run_child(code, DEVICE_LAYERS=names).stderr
        for names in ("trace,validate", "validate,trace")
    }
    assert refused == {"trace,validate": True, "validate,trace": False}


def test_without_layers_calls_are_direct(api: ModuleType, restored_layers: None) -> None:
    api.set_layers([])
    assert api.has_no_layers()
    api.set_layers(["validate"])
    assert not api.has_no_layers()
    api.set_layers([])
    assert api.has_no_layers()
