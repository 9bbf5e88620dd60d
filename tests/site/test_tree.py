"""The tree of files on the page, used by mouse and by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from choosing import CONTRAST, chromium, feature, opened, retype, shown, text
from rendering import Renderer, contents
from torchsmith import catalog

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.xdist_group("browser")


def test_toggling_a_feature_with_the_keyboard_updates_the_tree(
    page: WebDriver, render: Renderer
) -> None:
    features = [id for id in catalog.features() if id in catalog.presets()["standard"] - {"amp"}]
    standard, without = (
        set(contents(render(**answers))) for answers in ({}, {"features": features})
    )
    assert shown(page) == standard
    box = feature(page, "amp")
    box.send_keys(" ")
    assert not box.is_selected()
    assert shown(page) == without
    assert text(page, "count") == f"{len(without)} files"
    assert f"'features=[{', '.join(features)}]'" in text(page, "new")
    box.send_keys(" ")
    assert shown(page) == standard
    assert "-d preset=standard" in text(page, "new")


def test_a_file_opened_with_the_keyboard_stays_open(page: WebDriver, render: Renderer) -> None:
    retype(page, "backend_name", "acme")
    project = render(backend_name="acme")
    for path in ("python", "python/torch_acme", "python/torch_acme/__init__.py"):
        entry = page.find_element("css selector", f"#tree [data-path='{path}']")
        entry.send_keys("\n")
    assert text(page, "path") == "python/torch_acme/__init__.py"
    assert text(page, "content") == (project / "python/torch_acme/__init__.py").read_text("utf-8")
    # It stays open while other answers change.
    feature(page, "rng").click()
    assert text(page, "path") == "python/torch_acme/__init__.py"


def test_arrow_keys_move_through_the_tree(page: WebDriver) -> None:
    from selenium.webdriver.common.keys import Keys

    def press(*keys: str) -> str | None:
        for key in keys:
            page.switch_to.active_element.send_keys(key)
        return page.switch_to.active_element.get_attribute("data-path")

    page.find_element("id", "filter").send_keys(Keys.TAB)
    assert press() == ".github"
    # A key passes a closed folder; it enters, leaves and closes an open one.
    assert press(Keys.ARROW_DOWN) == "cmake"
    assert press(Keys.ARROW_UP) == ".github"
    assert press(Keys.ARROW_RIGHT) == ".github"
    assert page.switch_to.active_element.get_attribute("aria-expanded") == "true"
    assert press(Keys.ARROW_RIGHT) == ".github/ISSUE_TEMPLATE"
    assert press(Keys.ARROW_LEFT, Keys.ARROW_LEFT) == ".github"
    assert page.switch_to.active_element.get_attribute("aria-expanded") == "false"
    assert press(Keys.END) == "requirements-build.txt"
    assert press(Keys.ARROW_DOWN) == "requirements-build.txt"
    assert press("r") == "README.md"
    assert press(Keys.HOME, "d") == "device"
    assert press("d") == "docs"
    # The file is shown, and Tab returns to it.
    assert press("l", " ") == "LICENSE"
    assert text(page, "path") == "LICENSE"
    selected = page.find_elements("css selector", "#tree [aria-selected=true]")
    assert [item.get_attribute("data-path") for item in selected] == ["LICENSE"]
    page.find_element("id", "filter").send_keys(Keys.TAB)
    assert press() == "LICENSE"
    stops = "return document.querySelectorAll('#tree [tabindex=\"0\"]').length"
    assert page.execute_script(stops) == 1


def test_the_tree_has_accessible_roles_and_names(page: WebDriver) -> None:
    """Uses the browser's accessibility tree."""
    folder = page.find_element("css selector", "#tree [data-path=csrc]")
    assert (folder.aria_role, folder.accessible_name) == ("treeitem", "csrc")
    owned = page.find_element("css selector", "#tree [data-path='csrc/amp']")
    assert owned.get_attribute("aria-label") == "amp, amp"
    tree = page.find_element("id", "tree")
    assert (tree.aria_role, tree.accessible_name) == ("tree", "torch-foo")


def test_the_filter_shows_only_files_with_its_words(page: WebDriver) -> None:
    from selenium.webdriver.common.keys import Keys

    everything = shown(page)
    field = page.find_element("id", "filter")
    field.send_keys("AMP test")
    wanted = {it for it in everything if "amp" in it.lower() and "test" in it.lower()}
    assert wanted
    assert shown(page) == wanted
    assert text(page, "count") == f"{len(wanted)} of {len(everything)} files"
    entries = page.find_elements("css selector", "#tree [role=treeitem]")
    assert all(entry.is_displayed() for entry in entries)
    field.send_keys(Keys.ESCAPE)
    assert shown(page) == everything
    # Folders are closed again.
    assert not page.find_element("css selector", "#tree [data-path='csrc/amp']").is_displayed()
    field.send_keys("no such file")
    assert shown(page) == set()


def test_syntax_colours_do_not_change_the_text(page: WebDriver) -> None:
    ask = """
        return torchsmith.written().filter((path) => {
          torchsmith.choose(path);
          return document.getElementById("content").textContent !== torchsmith.textOf(path);
        });
    """
    assert page.execute_script(ask) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_syntax_colours_have_enough_contrast(
    dark: bool, content: dict[str, Any], tmp_path: Path
) -> None:
    with chromium(dark=dark) as window:
        for path in ("csrc/amp/autocast.cpp", "pyproject.toml", "mkdocs.yml"):
            window.get("about:blank")
            opened(window, content, tmp_path, f"#file={path}")
            assert text(window, "path") == path
            found = window.execute_script(CONTRAST)
            tokens = window.find_elements("css selector", "#content .token")
            colours = {token.value_of_css_property("color") for token in tokens[:60]}
            assert len(colours) >= 2
            assert found["weak"] == []
