"""--update-support writes few and general entries, whatever it is that a device declines."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

import pytest
from kernels import gaps, parameters
from kernels.support import Case, Entry, Outcome, Support, tomllib

DTYPES = ("bool", "int32", "float16", "bfloat16", "float32", "float64")
SHAPES = ((17, 33), (4, 5, 6, 7), (3, 2050), (2050, 3), (90, 90), (1, 2, 1, 3, 1, 1, 2, 1, 1, 5))
ORDERS = (0, 1, 2, 3, -1.5)
ALPHAS = (1, 2, 0.5, -1)

Declines = Callable[[Case], object]


def case(
    family: str, op: str, dtype: str, place: str, shape: tuple[int, ...], **named: object
) -> Case:
    elements = 1
    for size in shape:
        elements *= size
    given = parameters.words(
        {
            "rank": len(shape),
            "elements": elements,
            "longest": max(shape, default=1),
            "contiguous": place == "contiguous" or not shape,
            **named,
        }
    )
    return Case(family, op, dtype, place, "x".join(map(str, shape)) or "rank0", parameters=given)


PLACES = ("contiguous", "transposed", "stepped")
GRID = list(itertools.product(DTYPES, PLACES, SHAPES))
REDUCTIONS = [
    *(case("reduce", op, *where) for op in ("sum", "max") for where in GRID),
    *(case("reduce", "norm", *where, order=order) for where in GRID for order in ORDERS),
]
BINARIES = [
    *(case("binary", op, *where, alpha=1) for op in ("mul", "eq") for where in GRID),
    *(
        case("binary", op, *where, alpha=alpha)
        for op in ("add", "sub")
        for where in GRID
        for alpha in ALPHAS
    ),
]
CASES = [*REDUCTIONS, *BINARIES]


def of(case: Case, name: str) -> float:
    """A parameter as a number; one that the case lacks is none."""
    return float(case.by_name.get(name, "nan"))


def updated(declines: Declines, cases: list[Case] = CASES) -> list[Entry]:
    """What an update writes for a device that declines this, as it reads it again."""
    outcomes = [Outcome(case, "no" if declines(case) else None) for case in cases]
    entries, unclear = gaps.gaps(Support.parse({}), outcomes, gaps.QUICK)
    assert not unclear
    again = Support.parse(tomllib.loads(gaps.rewritten("", entries)))
    assert again.unsupported == entries
    for outcome in outcomes:
        assert (again.declared(outcome.case) is not None) == (outcome.answer is not None)
    return entries


@pytest.mark.parametrize(
    ("declines", "said"),
    [
        # A type.
        (
            lambda case: case.dtype == "float64",
            ["binary * float64 * * *", "reduce * float64 * * *"],
        ),
        (
            lambda case: case.dtype not in ("float32", "bfloat16"),
            [f"{family} * *,!bfloat16,!float32 * * *" for family in ("binary", "reduce")],
        ),
        # A limit of sizes.
        (
            lambda case: of(case, "longest") > 1024,
            ["binary * * * * * longest=>=2050", "reduce * * * * * longest=>=2050"],
        ),
        (
            lambda case: of(case, "rank") > 4,
            ["binary * * * * * rank=>=10", "reduce * * * * * rank=>=10"],
        ),
        (
            lambda case: of(case, "elements") > 5000,
            ["binary * * * * * elements=>=6150", "reduce * * * * * elements=>=6150"],
        ),
        # A parameter.
        (
            lambda case: case.op == "norm" and of(case, "order") != 2,
            ["reduce * * * * * order=*,!2"],
        ),
        (lambda case: of(case, "order") in (0, 3), ["reduce * * * * * order=0,3"]),
        (lambda case: of(case, "order") < 0, ["reduce * * * * * order=-1.5"]),
        (
            lambda case: of(case, "alpha") != 1 and case.family == "binary",
            ["binary * * * * * alpha=*,!1"],
        ),
        # A layout.
        (
            lambda case: case.by_name["contiguous"] == "false",
            ["binary * * * * * contiguous=false", "reduce * * * * * contiguous=false"],
        ),
        (
            lambda case: case.layout == "stepped",
            ["binary * * stepped * *", "reduce * * stepped * *"],
        ),
        # Mixes.
        (
            lambda case: (
                case.dtype == "int32" and case.family == "binary" and of(case, "alpha") != 1
            ),
            ["binary * int32 * * * alpha=*,!1"],
        ),
        (
            lambda case: (
                case.op == "sum" and case.dtype == "float16" and of(case, "longest") > 1024
            ),
            ["reduce sum float16 * * * longest=>=2050"],
        ),
        (
            lambda case: case.dtype == "bool" or (case.op == "norm" and of(case, "order") != 2),
            [
                "binary * bool * * *",
                "reduce * bool * * *",
                "reduce * * * * * order=*,!2",
            ],
        ),
        (
            lambda case: (
                case.dtype in ("float64", "bool")
                or case.by_name["contiguous"] == "false"
                or of(case, "rank") > 4
            ),
            [
                "binary * bool,float64 * * *",
                "binary * * * * * contiguous=false",
                "binary * * * * * rank=>=10",
                "reduce * bool,float64 * * *",
                "reduce * * * * * contiguous=false",
                "reduce * * * * * rank=>=10",
            ],
        ),
    ],
)
def test_what_is_written_is_what_the_device_means(declines: Declines, said: list[str]) -> None:
    assert sorted(map(str, updated(declines))) == sorted(said)


def invented(random: Random) -> list[Declines]:
    """Some rules of a device, of each kind."""
    dtype, another, third = random.sample(DTYPES, 3)
    order, place, limit = random.choice(ORDERS), random.choice(PLACES), random.choice((600, 7000))
    rules: list[Declines] = [
        lambda case: case.dtype == dtype,
        lambda case: of(case, "elements") > limit,
        lambda case: of(case, "order") == order,
        lambda case: case.op == "norm" and of(case, "order") != order,
        lambda case: case.layout == place,
        lambda case: case.op == "max" and case.dtype == another,
        lambda case: case.dtype == third and of(case, "longest") > 1024,
        lambda case: case.op == "sum" and case.by_name["contiguous"] == "false",
    ]
    return random.sample(rules, random.randint(1, 4))


@pytest.mark.parametrize("seed", range(8))
def test_the_entries_of_any_mix_are_few(seed: int) -> None:
    """As few as the rules of an invented device, and at most twice as many where those overlap."""
    chosen = invented(Random(seed))
    entries = updated(lambda case: any(rule(case) for rule in chosen), REDUCTIONS)
    assert len(entries) <= 2 * len(chosen), "\n".join(map(str, entries))
    assert all(entry.sizes == gaps.ANY for entry in entries)


@pytest.mark.parametrize("word", ["none", "inf", "nan"])
def test_words_may_stand_among_the_numbers_of_a_parameter(word: str) -> None:
    cases = [
        case("ternary", "lerp", *where, value=value) for where in GRID for value in (1, 2, 3, word)
    ]
    for lost in ({"3", word}, {"3"}, {word}, {"1", "3", word}):
        updated(lambda each, lost=lost: each.by_name["value"] in lost, cases)  # type: ignore[misc]


def test_cases_that_nothing_else_tells_apart_are_declared_by_their_sizes() -> None:
    odd = REDUCTIONS[0]
    (entry,) = updated(lambda case: case.sizes == odd.sizes and case.dtype == odd.dtype, REDUCTIONS)
    assert entry.dtype == (odd.dtype,)
    assert entry.sizes == gaps.ANY, "no others have as many elements"
    assert entry.parameters


@pytest.mark.parametrize(
    ("given", "value", "fits"),
    [
        (2, "2", True),
        (2.0, "2", True),
        ("2.0", "2", False),
        (["*", "!2"], "3", True),
        (["*", "!2"], "2", False),
        (">4", "16", True),
        (">4", "4", False),
        (">=4", "4", True),
        ("<1.5", "-inf", True),
        ("<=1.5", "none", False),
        (["*", "!>4"], "16", False),
        (["*", "!>4"], "4", True),
        (False, "false", True),
        ("relu*", "relu6", True),
    ],
)
def test_an_entry_names_parameters_by_globs_and_limits(
    given: object, value: str, fits: bool
) -> None:
    entry = {"family": "reduce", "parameters": {"order": given}, "reason": "no such order"}
    support = Support.parse({"unsupported": [entry]})
    asked = Case("reduce", "norm", "float32", parameters=f"order={value} rank=2")
    assert (support.declared(asked) is not None) == fits
    assert support.declared(Case("reduce", "sum", "float32", parameters="rank=2")) is None


def test_parameters_that_are_no_table_are_an_error() -> None:
    with pytest.raises(ValueError, match="parameters are a table"):
        Support.parse({"unsupported": [{"family": "reduce", "parameters": "order", "reason": "x"}]})


def test_an_entry_about_what_is_large_may_be_about_slow_cases() -> None:
    entries = [
        {"family": "reduce", "parameters": {"elements": ">1000000"}, "reason": "slow ones"},
        {"family": "reduce", "parameters": {"rank": ">16"}, "reason": "none"},
    ]
    support = Support.parse({"unsupported": entries})
    quick = gaps.unmet(support, REDUCTIONS, gaps.QUICK)
    assert [entry.reason for entry in quick] == ["none"]
