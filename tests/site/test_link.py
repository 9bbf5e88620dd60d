"""The page's address holds what was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from choosing import complaints, feature, reload, retype, text, unfold, visit

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.xdist_group("browser")

CHOSEN = """
const boxes = [...document.querySelectorAll("input[type=checkbox]")];
const texts = ["path", "command"].map((id) => document.getElementById(id).textContent);
return [answersGiven(), boxes.map((it) => [it.value, it.checked]), ...texts];
"""


def choose_much(page: WebDriver) -> None:
    """Choose something for every question, by hand."""
    unfold(page)
    retype(page, "backend_name", "acme")
    retype(page, "display_name", "Acme 漢字 + 1")
    retype(page, "vendor", "O'Neill & Söhne #1 = 100 %; a,b")
    retype(page, "description", "what? [this] / \\ that")
    for name in ("storage", "rng"):
        feature(page, name).click()
    for name in ("complex128", "int8"):
        page.find_element("css selector", f"input[name=dtypes][value={name}]").click()
    page.find_element("css selector", "#license option[value=mit]").click()
    page.find_element("css selector", "#ci_provider option[value=none]").click()
    page.find_element("css selector", "#tree [data-path=LICENSE]").send_keys("\n")


def test_a_link_and_a_reload_keep_every_choice(page: WebDriver) -> None:
    before = page.execute_script(CHOSEN)
    choose_much(page)
    chosen, link = page.execute_script(CHOSEN), page.current_url
    assert chosen[0]["vendor"] == "O'Neill & Söhne #1 = 100 %; a,b"
    assert chosen[2] == "LICENSE"
    reload(page)
    assert page.execute_script(CHOSEN) == chosen
    visit(page, link.partition("#")[0])
    assert page.execute_script(CHOSEN) == before
    page.get("about:blank")
    visit(page, link)
    assert page.execute_script(CHOSEN) == chosen
    # What followed the name in the link's page does so still.
    retype(page, "backend_name", "nova")
    assert page.find_element("id", "display_name").get_attribute("value") == "Acme 漢字 + 1"


@pytest.mark.parametrize("button", ["every", "none"])
def test_a_link_keeps_all_features_and_none(button: str, page: WebDriver) -> None:
    feature(page, "amp").click()
    page.find_element("id", button).click()
    chosen = page.execute_script(CHOSEN)
    reload(page)
    assert page.execute_script(CHOSEN) == chosen


def test_a_link_keeps_a_name_that_cannot_be(page: WebDriver) -> None:
    retype(page, "backend_name", "cuda")
    reload(page)
    assert page.find_element("id", "backend_name").get_attribute("value") == "cuda"
    assert "try 'my_cuda'" in text(page, "backend_name-problem")


def test_a_link_of_another_version_is_read_as_far_as_it_goes(page: WebDriver) -> None:
    address = page.current_url.partition("#")[0]
    visit(
        page, f"{address}#features=amp,gone&dtypes=float8_gone&license=gpl&color=red&file=gone.py"
    )
    asked, _, path, _ = page.execute_script(CHOSEN)
    assert asked["features"] == ["amp"]
    assert asked["dtypes"] == ["bool", "int64", "float32"]
    assert asked["license"] == "apache-2.0"
    assert path == "README.md"
    assert "gone" not in page.current_url
    assert complaints(page) == []


@pytest.mark.parametrize("preset", ["gone", "constructor"])
def test_a_preset_that_is_not_there_is_the_ordinary_one(preset: str, page: WebDriver) -> None:
    visit(page, f"{page.current_url.partition('#')[0]}#preset={preset}")
    assert page.execute_script("return answersGiven().preset") == "standard"
