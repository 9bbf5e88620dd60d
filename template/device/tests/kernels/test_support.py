"""What a device declares in support.toml is checked both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.harness import Device
from kernels.support import Case, Support

CASE = Case("fill", "-", "float32", "contiguous")


def declaring(device: Device, **lists: Any) -> Device:
    """The device, with another support.toml."""
    return Device(device.api, Support.parse(lists))


def fill(device: Device, answer: str | None = None, probed: str | None = None) -> None:
    """A case that works, or that is declined with an answer."""
    out = device.array("float32", (3,))

    def call(probe: bool) -> str | None:
        if answer is not None or probed is not None:
            return probed if probe else answer
        result: str | None = device.api.fill(device.stream, out.view, 1.0, probe=probe)
        return result

    device.run(CASE, [out], call)
    device.assert_exact(CASE, out, np.ones(3))


def test_a_decline_that_nobody_declared_fails(device: Device) -> None:
    with pytest.raises(AssertionError, match=r"declined \(too hard\)"):
        fill(declaring(device), "too hard", "too hard")


def test_a_declared_decline_is_a_skip(device: Device) -> None:
    entry = {"family": "fill", "dtype": "float*", "reason": "not yet"}
    with pytest.raises(pytest.skip.Exception, match="not yet"):
        fill(declaring(device, unsupported=[entry]), "too hard", "too hard")


def test_a_declaration_that_is_not_true_any_more_fails(device: Device) -> None:
    entry = {"family": "*", "reason": "not yet"}
    with pytest.raises(AssertionError, match="declares it unsupported"):
        fill(declaring(device, unsupported=[entry]))


def test_a_probe_that_says_something_else_than_the_launch_fails(device: Device) -> None:
    with pytest.raises(AssertionError, match="the probe said None"):
        fill(declaring(device), "too hard", None)


def test_an_expected_failure_that_passes_fails(device: Device) -> None:
    entry = {"family": "fill", "reason": "issue 1"}
    with pytest.raises(pytest.fail.Exception, match="is right now"):
        fill(declaring(device, expected_failures=[entry]))


def test_a_wrong_result_is_named_with_its_place_and_both_values(device: Device) -> None:
    out = device.array("float32", (2, 3), values=np.asarray([[1, 2, 3], [4, 5, 6]]))
    expected = np.asarray([[1, 2, 3], [4, 7, 6]])
    with pytest.raises(AssertionError, match=r"first at \(1, 1\): got .*5.*, expected .*7"):
        device.assert_exact(CASE, out, expected)


@pytest.mark.parametrize(
    "content",
    [
        {"unsuported": []},
        {"unsupported": [{"family": "unary"}]},
        {"unsupported": [{"family": "unary", "type": "int8", "reason": "x"}]},
        {"ulp": [{"family": "unary", "reason": "x"}]},
        {"random": "mine"},
    ],
)
def test_a_misspelt_declaration_is_an_error(content: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"support\.toml"):
        Support.parse(content)


def test_a_wider_tolerance_counts_for_its_cases_only() -> None:
    entry = {"family": "unary", "op": "tan", "ulp": 8, "reason": "documented"}
    support = Support.parse({"ulp": [entry]})
    assert support.tolerance(Case("unary", "tan", "float32"), 5) == 8
    assert support.tolerance(Case("unary", "sin", "float32"), 4) == 4
