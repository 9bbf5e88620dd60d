"""Operators that run on the CPU: how they are counted, reported and refused."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, PACKAGE, backend
from support import assert_same, run_python, sample

bessel = torch.special.bessel_j0
"""An operator that no kernel family has."""


def records(stats: dict[str, Any]) -> list[Any]:
    return [record for name, record in stats.items() if "special_bessel_j0" in name]


@pytest.fixture(autouse=True)
def restored_policy() -> Iterator[None]:
    before = backend.fallback_policy()
    backend.reset_fallback_stats()
    yield
    backend.set_fallback_policy(before)


def test_each_call_is_counted() -> None:
    values = sample(3)
    for _ in range(3):
        assert_same(bessel(values.to(DEVICE)), bessel(values))
    (record,) = records(backend.fallback_stats())
    assert record.calls == 3
    assert record.reason
    with backend.count_fallbacks() as counted:
        bessel(values.to(DEVICE))
    assert [record.calls for record in records(counted)] == [1]
    backend.reset_fallback_stats()
    assert backend.fallback_stats() == {}


def test_the_report_names_the_operator() -> None:
    bessel(torch.ones(2, device=DEVICE))
    text = io.StringIO()
    backend.fallback_report(file=text)
    assert "aten::special_bessel_j0" in text.getvalue()


def test_the_policy_error_names_the_operator() -> None:
    values = torch.ones(2, device=DEVICE)
    backend.set_fallback_policy("error")
    with pytest.raises(NotImplementedError, match="special_bessel_j0"):
        bessel(values)
    backend.set_fallback_policy("error,silent:aten::special_*")
    assert_same(bessel(values), bessel(torch.ones(2)))


def test_a_feature_that_has_a_kernel_is_named() -> None:
    hints = importlib.import_module(f"{PACKAGE}._absent").fallback_hints()
    text = "; feature linalg has one: torchsmith add linalg"
    values = torch.ones(2, device=DEVICE)
    backend.reset_fallback_stats()
    backend._C.set_fallback_hints({**hints, "aten::special_bessel_j0": text})
    try:
        bessel(values)
        (record,) = records(backend.fallback_stats())
        assert record.reason == f"no kernel{text}"
        backend.set_fallback_policy("error")
        with pytest.raises(NotImplementedError, match=f"has no kernel for it{text}"):
            bessel(values)
    finally:
        backend._C.set_fallback_hints(hints)


def test_the_environment_sets_the_policy() -> None:
    program = f"""
        import torch
        values = torch.empty(2, device="{DEVICE}")
        torch.special.bessel_j0(values)
        torch.special.bessel_j1(values)
    """
    policy = "error,warn:*bessel_j0*,silent:*empty*"
    done = run_python(program, {f"{ENV_PREFIX}_FALLBACK": policy}, check=False)
    assert done.returncode == 1
    assert "UserWarning: aten::special_bessel_j0" in done.stderr
    assert "NotImplementedError" in done.stderr and "special_bessel_j1" in done.stderr


def test_results_written_arguments_and_errors_are_as_on_the_cpu() -> None:
    values = sample(4)
    there, out = values.to(DEVICE), torch.empty(0, device=DEVICE)
    assert bessel(there, out=out) is out
    assert_same(out, bessel(values))
    columns = torch.zeros(4, 2, device=DEVICE)
    bessel(there, out=columns[:, 1])
    assert_same(columns[:, 0], torch.zeros(4))
    assert_same(columns[:, 1], bessel(values))
    with pytest.raises(RuntimeError, match="device"):
        torch.special.hermite_polynomial_h(there, torch.ones(4))
