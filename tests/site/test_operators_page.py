"""The page with the results of a rendered project's conformance tests, in a browser."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from choosing import CONTRAST, chromium, console_errors
from commanding import succeed

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

REPORT = Path(__file__).parents[2] / "template" / "tests" / "conformance" / "report.py"
DTYPES = ["bool", "float32"]


def cell(kind: str = "pass", route: str = "native", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "route": route, "fallbacks": [], "samples": 1, "reason": "", **more}


RESULTS = {
    "add": {
        "float32": {"forward": cell(), "out": cell(), "backward": cell()},
        "bool": {"forward": cell(route="composite")},
    },
    "sort": {"float32": {"forward": cell(route="fallback", fallbacks=["aten::sort.stable"])}},
    "to_sparse": {"float32": {"forward": cell("raised", category="sparse", reason="<no> sparse")}},
    "broken": {"float32": {"forward": cell("wrong")}},
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a page made from RESULTS."""
    folder = tmp_path_factory.mktemp("page")
    versions = {
        "backend": "foo",
        "package": "torch_foo 1",
        "device": "Simulator",
        "dtypes": DTYPES,
        "torch": "2.13.0",
        "python": "3.11",
        "machine": "Linux",
        "date": "2030-01-02",
    }
    evidence = folder / "conformance.json"
    overloads = {"native": 3, "computed": 4}
    document = {"versions": versions, "overloads": overloads, "results": RESULTS}
    evidence.write_text(json.dumps(document))
    succeed(sys.executable, REPORT, evidence, "--out", folder)
    return (folder / "operators.html").as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    with chromium(width=1200) as window:
        yield window


@pytest.fixture
def window(browser: WebDriver, page: str) -> Iterator[WebDriver]:
    browser.get(page)
    yield browser
    assert console_errors(browser) == []


def operators(window: WebDriver) -> list[str]:
    rows = window.find_elements("css selector", "#operators tr.row th")
    return [row.text for row in rows]


def choose(window: WebDriver, name: str, value: str) -> None:
    window.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event('input'))",
        name,
        value,
    )


def test_the_page_shows_totals_versions_and_reasons(window: WebDriver) -> None:
    text = window.find_element("tag name", "body").text
    assert "3 of the 5 pairs" in text
    assert "3 of the 4 overloads" in text
    assert "1 wrong results, 0 crashes" in text
    assert "2030-01-02" in text
    assert "<no> sparse: to_sparse" in text
    forward = window.find_element("css selector", "#totals tbody tr").text
    assert forward.split() == ["forward", "1", "1", "1", "1", "1"]


def test_the_table_can_be_searched_filtered_and_sorted(window: WebDriver) -> None:
    assert operators(window) == ["add", "broken", "sort", "to_sparse"]
    choose(window, "search", "aten::sort")
    assert operators(window) == ["sort"]
    choose(window, "search", "")
    choose(window, "dtype", "bool")
    assert operators(window) == ["add"]
    choose(window, "dtype", "")
    choose(window, "show", "4")
    assert operators(window) == ["broken"]
    choose(window, "show", "")
    forward = window.find_elements("css selector", "#operators thead button")[1]
    forward.click()
    assert operators(window) == ["add", "sort", "to_sparse", "broken"]
    forward.click()
    assert operators(window) == ["broken", "to_sparse", "sort", "add"]


def test_a_row_shows_the_details_of_its_operator(window: WebDriver) -> None:
    window.execute_script("document.querySelectorAll('#operators tr.row')[2].click()")
    assert "on the CPU: aten::sort.stable" in window.find_element("css selector", "tr.more").text


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (500, False), (1200, True)])
def test_texts_have_enough_contrast_and_the_page_fits_the_window(
    width: int, dark: bool, page: str
) -> None:
    with chromium(width=width, dark=dark) as window:
        window.get(page)
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert window.execute_script(wide) <= 0
        found = window.execute_script(CONTRAST)
        assert len(found["seen"]) > 3
        assert found["weak"] == []
        assert console_errors(window) == []
