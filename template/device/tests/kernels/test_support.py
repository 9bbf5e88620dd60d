"""What a device declares in support.toml is checked both ways."""

from __future__ import annotations

import types
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels import gaps, report
from kernels.harness import Device
from kernels.support import Case, Outcome, Support, tomllib

CASE = Case("fill", "-", "float32", "contiguous")


def declaring(device: Device, **lists: Any) -> Device:
    """The device, with another support.toml."""
    return Device(device.api, Support.parse(lists))


def run(
    device: Device,
    answer: str | None = None,
    probed: str | None = None,
    deterministic_too: bool = True,
) -> None:
    """A case that the device does or declines, as is said here."""

    def family(stream: object, *, probe: bool, deterministic: bool) -> str | None:
        if not deterministic and not deterministic_too:
            return None
        return probed if probe else answer

    device.api = types.SimpleNamespace(
        fill=family, is_idle=lambda stream: True, synchronize=lambda stream: None
    )
    device.run(CASE, [])


def test_a_decline_that_nobody_declared_fails(device: Device) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"declined \(too hard\)"):
        run(declaring(device), "too hard", "too hard")


def test_a_declared_decline_is_a_skip(device: Device) -> None:
    entry = {"family": "fill", "dtype": "float*", "reason": "not yet"}
    with pytest.raises(pytest.skip.Exception, match="not yet"):
        run(declaring(device, unsupported=[entry]), "too hard", "too hard")


def test_a_declaration_that_is_not_true_any_more_fails(device: Device) -> None:
    entry = {"family": "*", "reason": "not yet"}
    with pytest.raises(pytest.fail.Exception, match="declares it unsupported"):
        run(declaring(device, unsupported=[entry]))


def test_a_probe_that_says_something_else_than_the_launch_fails(device: Device) -> None:
    with pytest.raises(AssertionError, match="the probe said None"):
        run(declaring(device), "too hard", None)


def test_a_decline_of_one_mode_is_about_that_mode(device: Device) -> None:
    """And the case is done in the other."""
    entry = {"family": "fill", "mode": "deterministic", "reason": "atomics"}
    declared = declaring(device, unsupported=[entry])
    run(declared, "too hard", "too hard", deterministic_too=False)
    assert {(each.case.mode, each.answer) for each in declared.outcomes} == {
        ("free", None),
        ("deterministic", "too hard"),
    }
    with pytest.raises(pytest.fail.Exception, match=r"free works, but support\.toml declares"):
        entry = {"family": "fill", "reason": "atomics"}
        run(declaring(device, unsupported=[entry]), "too hard", "too hard", deterministic_too=False)


def test_where_a_device_is_only_asked_it_is_asked_for_every_case(device: Device) -> None:
    asked = Device(device.api, Support.parse({}), probes_only=True)
    for dtype in ("float32", "int32"):
        out = asked.array(dtype, (5,))
        asked.run(replace(CASE, dtype=dtype), [out], out, more=[2.0])
        asked.assert_exact(CASE, out, np.full(5, 3.0))
    assert [each.case.dtype for each in asked.outcomes] == ["float32", "int32"]


@pytest.mark.parametrize("careless", [True, False])
def test_results_that_need_not_be_the_same_bits_are_looked_at_too(
    device: Device, careless: bool
) -> None:
    api = device.api

    def fill(stream: object, out: object, value: float, *, probe: bool, deterministic: bool) -> Any:
        wrong = careless and not deterministic
        return api.fill(stream, out, value + wrong, probe=probe, deterministic=deterministic)

    tried = declaring(device)
    tried.api = types.SimpleNamespace(
        fill=fill, is_idle=api.is_idle, synchronize=api.synchronize, Buffer=api.Buffer
    )
    plain = declaring(device)
    out = plain.array("float32", (5,))
    tried.run(Case("fill", "-", "float32", "contiguous"), [out], out, more=[2.0])
    assert tried.differs == careless
    plain.assert_exact(CASE, out, np.full(5, 2.0))


def test_an_expected_failure_that_passes_fails(device: Device) -> None:
    entry = {"family": "fill", "reason": "issue 1"}
    with pytest.raises(pytest.fail.Exception, match="is right now"):
        declaring(device, expected_failures=[entry]).check(CASE, lambda: None)


def test_a_wrong_result_is_named_with_its_place_and_both_values(device: Device) -> None:
    plain = declaring(device)
    out = plain.array("float32", (2, 3), values=np.asarray([[1, 2, 3], [4, 5, 6]]))
    expected = np.asarray([[1, 2, 3], [4, 7, 6]])
    with pytest.raises(AssertionError, match=r"first at \(1, 1\): got .*5.*, expected .*7"):
        plain.assert_exact(CASE, out, expected)


@pytest.mark.parametrize(
    "content",
    [
        {"unsuported": []},
        {"unsupported": [{"family": "unary"}]},
        {"unsupported": [{"family": "unary", "type": "int8", "reason": "x"}]},
        {"unsupported": [{"family": "unray", "reason": "x"}]},
        {"ulp": [{"family": "unary", "reason": "x"}]},
        {"ulp": [{"family": "unary", "ulp": 3, "reason": "x", "note": "y"}]},
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


def test_the_capabilities_of_the_runtime_are_told_one_by_one() -> None:
    results = [
        ("test_events", "passed", ""),
        ("test_events", "skipped", "cannot time"),
        ("test_host_functions", "skipped", "has none"),
        ("test_streams", "passed", ""),
        ("test_streams", "failed", ""),
    ]
    events, host, streams = map(str.split, report.capabilities(results))
    assert " ".join(events) == "events yes 1 of 2 not tried: cannot time (1)"
    assert host[:3] == ["host", "functions", "no"]
    assert streams == ["streams", "FAIL", "1", "of", "2"]


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
    quick, everything = (gaps.unmet(support, cases, tier) for tier in (gaps.QUICK, gaps.ALL))
    assert [entry.reason for entry in quick] == ["not met"]
    assert [entry.reason for entry in everything] == ["not met", "among the slow cases"]


def test_an_update_declares_what_is_declined_in_few_words() -> None:
    old = [
        {"family": "unary", "op": "log", "reason": "does not decline float32 any more"},
        {"family": "binary", "reason": "not in this run"},
        {"family": "unary", "op": "tan", "reason": "there is none"},
    ]
    support = Support.parse({"unsupported": old})
    entries, unclear = gaps.gaps(support, SEEN, gaps.QUICK)
    assert not unclear
    assert list(map(str, entries)) == ["binary * * * * *", "unary * float64 * * *"]
    assert entries[0].reason == "not in this run"
    assert entries[1].reason == "no doubles; no fp64"


def test_an_update_keeps_a_note_and_replaces_a_reason() -> None:
    entry = {"family": "unary", "dtype": "float64", "reason": "no unary", "note": "chip 2 has it"}
    for old, texts in (
        (entry, [("no doubles; no fp64", "chip 2 has it")]),
        ({**entry, "dtype": "*"}, [("no doubles; no fp64", "")]),
    ):
        entries, _ = gaps.gaps(Support.parse({"unsupported": [old]}), SEEN, gaps.QUICK)
        assert [(each.reason, each.note) for each in entries] == texts


def test_an_update_names_what_works_where_that_is_shorter() -> None:
    kinds = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64")
    some = {
        f"{op}_{kind}": None if kind in ("float32", "int64") and op != "erf" else "only two types"
        for op in ("exp", "log", "erf")
        for kind in kinds
    }
    some["erf_float32"] = "no erf"
    some["erf_int64"] = None
    seen = outcomes(**some)
    entries, _ = gaps.gaps(Support.parse({}), seen, gaps.QUICK)
    assert [(str(entry), entry.reason) for entry in entries] == [
        ("unary * *,!float32,!int64 * * *", "only two types"),
        ("unary erf float32 * * *", "no erf"),
    ]
    for outcome in seen:
        assert any(entry.matches(outcome.case) for entry in entries) == (outcome.answer is not None)


def test_gaps_of_two_fields_share_an_entry() -> None:
    layouts = ("rows", "columns", "steps")
    seen = [
        Outcome(
            Case("copy", op, "float32", layout, "3"),
            "strided" if op != "same" and layout != "rows" else None,
        )
        for op in ("same", "up", "down")
        for layout in layouts
    ]
    entries, _ = gaps.gaps(Support.parse({}), seen, gaps.QUICK)
    (entry,) = entries
    assert [entry.matches(outcome.case) for outcome in seen] == [
        outcome.answer is not None for outcome in seen
    ]


def test_a_family_that_is_declined_is_one_entry() -> None:
    declined = outcomes(exp_float32="none", log_int8="none")
    (entry,), _ = gaps.gaps(Support.parse({}), declined, gaps.QUICK)
    assert str(entry) == "unary * * * * *"


def test_cases_that_only_their_sizes_tell_apart_are_declared_by_those() -> None:
    wide = Outcome(replace(SEEN[0].case, sizes="9x9 9x9"), "too wide")
    (entry,), unclear = gaps.gaps(Support.parse({}), [SEEN[0], wide], gaps.QUICK)
    assert str(entry) == "unary * * * 9x9 9x9 *"
    same = Outcome(SEEN[0].case, "sometimes")
    entries, unclear = gaps.gaps(Support.parse({}), [SEEN[0], same], gaps.QUICK)
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
    entries, _ = gaps.gaps(Support.parse({}), SEEN, gaps.QUICK)
    updated = gaps.rewritten(text, entries)
    assert updated.startswith('# Ours.\nrandom = "own"\n\n[[ulp]]  # wide\n')
    support = Support.parse(tomllib.loads(updated))
    assert support.unsupported == entries
    assert support.ulp[0].ulp == 8
    assert gaps.rewritten(updated, entries) == updated
