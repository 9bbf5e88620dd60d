"""What a device declares in support.toml is checked both ways."""

from __future__ import annotations

import types
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels import report
from kernels.harness import Device
from kernels.support import Case, Outcome, Support, tomllib

CASE = Case("fill", "-", "float32", "contiguous")


def declaring(device: Device, **lists: Any) -> Device:
    """The device, with another support.toml."""
    return Device(device.api, Support.parse(lists))


def run(device: Device, answer: str | None = None, probed: str | None = None) -> None:
    """A case that the device does or declines, as is said here."""

    def family(stream: object, *, probe: bool) -> str | None:
        return probed if probe else answer

    device.api = types.SimpleNamespace(
        fill=family, is_idle=lambda stream: True, synchronize=lambda stream: None
    )
    device.run(CASE, [])


def test_a_decline_that_nobody_declared_fails(device: Device) -> None:
    with pytest.raises(AssertionError, match=r"declined \(too hard\)"):
        run(declaring(device), "too hard", "too hard")


def test_a_declared_decline_is_a_skip(device: Device) -> None:
    entry = {"family": "fill", "dtype": "float*", "reason": "not yet"}
    with pytest.raises(pytest.skip.Exception, match="not yet"):
        run(declaring(device, unsupported=[entry]), "too hard", "too hard")


def test_a_declaration_that_is_not_true_any_more_fails(device: Device) -> None:
    entry = {"family": "*", "reason": "not yet"}
    with pytest.raises(AssertionError, match="declares it unsupported"):
        run(declaring(device, unsupported=[entry]))


def test_a_probe_that_says_something_else_than_the_launch_fails(device: Device) -> None:
    with pytest.raises(AssertionError, match="the probe said None"):
        run(declaring(device), "too hard", None)


def test_an_expected_failure_that_passes_fails(device: Device) -> None:
    entry = {"family": "fill", "reason": "issue 1"}
    with pytest.raises(pytest.fail.Exception, match="is right now"):
        declaring(device, expected_failures=[entry]).check(CASE, lambda: None)


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
        {"unsupported": [{"family": "unray", "reason": "x"}]},
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


def test_the_last_of_several_globs_counts() -> None:
    entry = {"family": "unary", "op": ["*", "!exp*", "exp2"], "reason": "not yet"}
    support = Support.parse({"unsupported": [entry]})
    declined = {
        op: support.declared(Case("unary", op)) is not None for op in ("sin", "exp", "exp2")
    }
    assert declined == {"sin": True, "exp": False, "exp2": True}
    assert support.declared(Case("binary", "sin")) is None


def outcomes(**answers: str | None) -> list[Outcome]:
    """Cases of unary, named op_dtype, with the device's answers."""
    return [
        Outcome(Case("unary", *name.split("_"), layout="contiguous", sizes="3 3"), answer)
        for name, answer in answers.items()
    ]


SEEN = outcomes(exp_float32=None, exp_float64="no doubles", log_float32=None, log_float64="no fp64")


def test_the_matrix_tells_families_by_element_type() -> None:
    mixed = [*SEEN, *outcomes(log_int8=None, exp_int8="no integers")]
    mixed.append(Outcome(Case("copy", "bool", "bool"), failed=True))
    header, copy, unary = (line.split() for line in report.matrix(mixed))
    assert header[:3] == ["bool", "u8", "i8"]
    assert copy == ["copy", "FAIL"]
    assert unary == ["unary", "part", "yes", "no"]


def test_the_json_counts_cases_and_keeps_reasons() -> None:
    families = report.as_json(SEEN)
    assert families["unary"]["float64"]["exp"]["reasons"] == ["no doubles"]
    assert families["unary"]["float32"]["log"] | {"ulp": 0} == {
        **{"supported": 1, "declined": 0, "failed": 0, "ulp": 0, "reasons": []}
    }


def test_a_declaration_that_is_about_no_case_is_found() -> None:
    entries = [
        {"family": "unary", "dtype": "float64", "reason": "met"},
        {"family": "unary", "op": "tan", "reason": "not met"},
        {"family": "binary", "reason": "not in this run"},
        {"family": "unary", "sizes": "65537x64*", "reason": "among the slow cases"},
    ]
    support = Support.parse({"unsupported": entries})
    cases = [outcome.case for outcome in SEEN]
    quick, everything = (report.unmet(support, cases, tier) for tier in (report.QUICK, report.ALL))
    assert [entry.reason for entry in quick] == ["not met"]
    assert [entry.reason for entry in everything] == ["not met", "among the slow cases"]


def test_an_update_declares_what_is_declined_in_few_words() -> None:
    old = [
        {"family": "unary", "op": "log", "reason": "does not decline float32 any more"},
        {"family": "binary", "reason": "not in this run"},
        {"family": "unary", "op": "tan", "reason": "there is none"},
    ]
    support = Support.parse({"unsupported": old})
    entries, unclear = report.gaps(support, SEEN, report.QUICK)
    assert not unclear
    assert list(map(str, entries)) == ["binary * * * *", "unary * float64 * *"]
    assert entries[1].reason == "does not decline float32 any more; no doubles"


def test_a_family_that_is_declined_is_one_entry() -> None:
    declined = outcomes(exp_float32="none", log_int8="none")
    (entry,), _ = report.gaps(Support.parse({}), declined, report.QUICK)
    assert str(entry) == "unary * * * *"


def test_cases_that_only_their_sizes_tell_apart_are_declared_by_those() -> None:
    wide = Outcome(replace(SEEN[0].case, sizes="9x9 9x9"), "too wide")
    (entry,), unclear = report.gaps(Support.parse({}), [SEEN[0], wide], report.QUICK)
    assert str(entry) == "unary * * * 9x9 9x9"
    same = Outcome(SEEN[0].case, "sometimes")
    entries, unclear = report.gaps(Support.parse({}), [SEEN[0], same], report.QUICK)
    assert (entries, unclear) == ([], {SEEN[0].case})


def test_an_update_leaves_the_rest_of_the_file_alone() -> None:
    text = """# Ours.
random = "own"

[[unsupported]]
family = "unary"
reason = "old"

[[ulp]]  # wide
family = "unary"
ulp = 8
reason = "documented"
"""
    entries, _ = report.gaps(Support.parse({}), SEEN, report.QUICK)
    updated = report.rewritten(text, entries)
    assert updated.startswith('# Ours.\nrandom = "own"\n\n[[ulp]]  # wide\n')
    support = Support.parse(tomllib.loads(updated))
    assert support.unsupported == entries
    assert support.ulp[0].ulp == 8
    assert report.rewritten(updated, entries) == updated
