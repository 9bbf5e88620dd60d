"""support.toml is checked in both directions, and written from the device's answers."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any

import pytest
from kernels import gaps
from kernels.harness import Device
from kernels.support import Case, Outcome, Support, matches, tomllib

CASE = Case("fill", "-", "float32", "contiguous")


def run(
    device: Device,
    unsupported: dict[str, str],
    answer: str | None = None,
    probed: str | None = None,
    deterministic_too: bool = True,
) -> Device:
    """Runs a case on a device with these declarations and answers."""

    def family(stream: object, *, probe: bool, deterministic: bool) -> str | None:
        if not deterministic and not deterministic_too:
            return None
        return probed if probe else answer

    device = Device(device.api, Support(unsupported))
    device.api = types.SimpleNamespace(
        fill=family, is_idle=lambda stream: True, synchronize=lambda stream: None
    )
    device.run(CASE, [])
    return device


def test_an_undeclared_unsupported_call_fails(device: Device) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"unsupported \(too hard\)"):
        run(device, {}, "too hard", "too hard")


def test_a_declared_unsupported_call_is_skipped(device: Device) -> None:
    with pytest.raises(pytest.skip.Exception, match="too hard"):
        run(device, {"fill dtype=float*": "not yet"}, "too hard", "too hard")


def test_a_line_about_a_supported_call_fails(device: Device) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"remove 'fill dtype=int8\|float32'"):
        run(device, {"fill dtype=int8|float32": "not yet"})


def test_a_probe_that_differs_from_the_launch_fails(device: Device) -> None:
    with pytest.raises(AssertionError, match="the probe said None"):
        run(device, {}, "too hard", None)


def test_a_line_can_apply_to_one_mode(device: Device) -> None:
    """The case runs in the other mode."""
    answers: dict[str, Any] = {"answer": "no", "probed": "no", "deterministic_too": False}
    asked = run(device, {"fill mode=deterministic": "atomics"}, **answers)
    assert {(each.case.mode, each.answer) for each in asked.outcomes} == {
        ("free", None),
        ("deterministic", "no"),
    }
    with pytest.raises(pytest.fail.Exception, match="mode=free works"):
        run(device, {"fill": "atomics"}, **answers)


# --- Writing support.toml ---

CASES = [
    Case("reduce", op, dtype, layout, size, parameters=f"{named} rank={rank}".strip())
    for op, named in [("sum", ""), *(("norm", f"order={order}") for order in (0, 2, 3))]
    for dtype, layout, (size, rank) in itertools.product(
        ("int32", "bfloat16", "float32", "float64"),
        ("contiguous", "stepped"),
        (("17x33", 2), ("4x5x6", 3), ("3x2050", 2)),
    )
]


@pytest.mark.parametrize(
    ("is_unsupported", "lines"),
    [
        (lambda words: True, ["reduce"]),
        (lambda words: words["dtype"] == "float64", ["reduce dtype=float64"]),
        (lambda words: words["dtype"] != "float32", ["reduce dtype=bfloat16|float64|int32"]),
        (lambda words: words.get("order", "2") != "2", ["reduce order=0|3"]),
        (lambda words: words["rank"] == "3", ["reduce rank=3"]),
        (lambda words: words["sizes"] == "3x2050", ["reduce sizes=3x2050"]),
        (
            lambda words: words["op"] == "sum" and words["dtype"] == "int32",
            ["reduce dtype=int32 op=sum"],
        ),
        (
            lambda words: words["layout"] == "stepped" or words["op"] == "norm",
            ["reduce op=norm", "reduce layout=stepped"],
        ),
    ],
)
def test_written_support_files_are_short(
    is_unsupported: Callable[[Any], bool], lines: list[str]
) -> None:
    outcomes = [Outcome(case, "no" if is_unsupported(case.words) else None) for case in CASES]
    found, unclear = gaps.unsupported_lines(outcomes)
    assert (list(found), unclear) == (lines, [])
    for outcome in outcomes:
        told = any(matches(line, outcome.case) for line in found)
        assert told == (outcome.answer is not None), outcome.case


def test_a_new_file_keeps_lines_of_families_that_did_not_run() -> None:
    head = 'random = "own"  # Ours.\n\n[unsupported]\n"fft" = "none"\n'
    text = head + '"reduce" = "ours"\n"binary" = "?"\n'
    outcomes = [Outcome(case, "theirs") for case in CASES]
    outcomes.append(Outcome(Case("binary", "add", "float32")))
    updated, _ = gaps.rewritten(text, Support(**tomllib.loads(text)), outcomes)
    assert updated == head + '"reduce" = "ours"\n'
