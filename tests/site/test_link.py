"""The page's address contains the choices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from choosing import console_errors, pick, reload, retype, text, visit

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.xdist_group("browser")

CHOSEN = """
const texts = ["path", "new"].map((id) => document.getElementById(id).textContent);
return [torchsmith.choices(), ...texts];
"""


def test_a_link_and_a_reload_keep_every_choice(page: WebDriver) -> None:
    before = page.execute_script(CHOSEN)
    retype(page, "backend_name", "acme")
    pick(page, {"storage", "rng"})
    page.find_element("css selector", "#tree [data-path=LICENSE]").send_keys("\n")
    chosen, link = page.execute_script(CHOSEN), page.current_url
    assert chosen[0] == {"name": "acme", "preset": "custom", "features": ["rng", "storage"]}
    assert chosen[1] == "LICENSE"
    reload(page)
    assert page.execute_script(CHOSEN) == chosen
    visit(page, link.partition("#")[0])
    assert page.execute_script(CHOSEN) == before
    page.get("about:blank")
    visit(page, link)
    assert page.execute_script(CHOSEN) == chosen


@pytest.mark.parametrize("preset", ["full", "minimal"])
def test_a_link_keeps_all_features_and_none(preset: str, page: WebDriver) -> None:
    page.find_element("css selector", f"input[value={preset}]").click()
    chosen = page.execute_script(CHOSEN)
    assert chosen[0]["preset"] == preset
    reload(page)
    assert page.execute_script(CHOSEN) == chosen


def test_a_link_keeps_an_invalid_name(page: WebDriver) -> None:
    retype(page, "backend_name", "cuda")
    reload(page)
    assert page.find_element("id", "backend_name").get_attribute("value") == "cuda"
    assert "try 'my_cuda'" in text(page, "backend_name-problem")


@pytest.mark.parametrize(
    ("link", "preset", "features"),
    [
        ("features=amp,gone&color=red", "custom", ["amp"]),
        ("preset=gone", "standard", None),
        ("preset=constructor", "standard", None),
    ],
)
def test_unknown_parts_of_a_link_are_ignored(
    link: str, preset: str, features: list[str] | None, page: WebDriver
) -> None:
    visit(page, f"{page.current_url.partition('#')[0]}#{link}&file=gone.py")
    choices, path, _ = page.execute_script(CHOSEN)
    assert choices["preset"] == preset
    assert features in (None, choices["features"])
    assert path == "README.md"
    assert "gone" not in page.current_url
    assert console_errors(page) == []
