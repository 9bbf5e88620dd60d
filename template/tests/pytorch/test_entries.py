"""The entries of known.toml: what they may say, which tests they fit, and when one is stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytorch.expectations import Case, Entry, Expectations, Mistake, arrived, read


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[skip]]\nreason = 'r'", "'files' is missing"),
        ("[[xfail]]\nfiles = ['a.py']", "'reason' is missing"),
        ("[[xfail]]\nfiles = 'a.py'\nreason = 'r'", "'files' is 'a.py', and must be a list"),
        ("[[skip]]\nfiles = ['a']\nreason = 'r'\nclass = ['T']", "there is no key 'class'"),
        ("[[skips]]\nfiles = ['a']\nreason = 'r'", "there is no table [[skips]]"),
        ("[[skip]]\nfiles = ['a']\nreason = 'r'\nuntil = '2'", "'until' is '2', and must be"),
        ("[[tolerance]]\nfiles = ['a']\nreason = 'r'", "needs 'absolute', 'relative' or both"),
        ("[[tolerance]]\nfiles = ['a']\nreason = 'r'\nabsolute = -1", "'absolute' is -1"),
        ("[[xfail]]\nfiles = ['a']\nreason = 'r'\nabsolute = 1", "there is no key 'absolute'"),
        ("[[skip]", "is not TOML"),
    ],
)
def test_mistake_in_an_entry_is_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(Mistake) as mistake:
        read([file])
    assert sentence in str(mistake.value)
    assert str(mistake.value).startswith("known.toml")
    assert "\n" not in str(mistake.value)


def entry(**values: Any) -> Entry:
    """Return an entry about one file."""
    given = {"table": "xfail", "place": "here", "files": ("a.py",), "reason": "r"} | values
    return Entry(**given)


SIN = Case("a.py", "TestA", "test_x", "test_x_sin_foo_float32", "sin", ("float32",))


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        ({}, True),
        ({"files": ("*.py",)}, True),
        ({"files": ("b.py",)}, False),
        ({"classes": ("TestB",)}, False),
        ({"tests": ("test_x",)}, True),
        ({"tests": ("test_x_sin_*",)}, True),
        ({"tests": ("test_y",)}, False),
        ({"operators": ("cos", "sin")}, True),
        ({"operators": ("cos",)}, False),
        ({"operators": ("sin",), "dtypes": ("float64",)}, False),
    ],
)
def test_an_entry_fits_a_test_in_every_name(values: dict[str, Any], fits: bool) -> None:
    assert bool(entry(**values).hits(SIN)) is fits


def test_entries_are_of_some_releases_only() -> None:
    old = entry(until=(2, 14))
    new = entry(since=(2, 14))
    assert Expectations([old, new], (2, 13)).entries == [old]
    assert Expectations([old, new], (2, 14)).entries == [new]
    assert arrived([old, new], (2, 13)) == []
    assert len(arrived([old, new], (2, 14))) == 1


def test_an_entry_is_judged_when_all_of_its_files_were_seen() -> None:
    known = Expectations([entry(files=("a.py", "b.py"), tests=("test_gone",))], (2, 13))
    assert known.stale(["a.py", "b.py"], {"a.py"}) == []
    assert known.stale(["a.py", "b.py"], {"a.py", "b.py"}) == [
        "here: 'test_gone' of 'tests' fits no test"
    ]
    assert known.stale(["c.py"], {"c.py"}) == ["here: no file is called a.py or b.py"]
    assert known.stale(["wheel/c.py"], {"wheel/c.py"}) == []


def test_entries_of_the_project_read_and_have_reasons() -> None:
    assert all(len(one.reason) > 10 for one in read())
