"""The whole page: its questions, its contents, and its accessibility."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from choosing import (
    CONTRAST,
    chromium,
    console_errors,
    feature,
    opened,
    pick,
    retype,
    shown,
    text,
)  # fmt: skip
from commanding import run_python, succeed
from maintenance.site import build
from rendering import ROOT, answers_in, commit, snapshot
from torchsmith import catalog
from torchsmith.template import REPOSITORY

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.xdist_group("browser")

# Components of prismjs 1.30.0, from `npm pack`.
PUBLISHED = {
    "LICENSE": "2b947f0901a7ffcf08a89957da9783c0e9c6e72cb6ce8e959f501ab5409e4d2b",
    "prism-c.min.js": "9e05cf21207bff46afbf80cb8f43bb58bc4a4a87b68f28bc0470342f69345209",
    "prism-clike.min.js": "c76ba4e240932bdc75546be30e550f5ba5e13815ff71511c76e9e27ac3072444",
    "prism-core.min.js": "6caad316dd991f24f8004e0b9c19c055cb5829ff65e973fbee406f96d81b8e7e",
    "prism-cpp.min.js": "12077d9ea67882c149066e94843a6ede9036994b3724bfc45b31d97619328e14",
    "prism-python.min.js": "ed4385685bcf2d4935c8dbbab4bde16603da1329e092d2bf36c3dadd67e9a85c",
    "prism-toml.min.js": "bc71428fec2670d59cda5ad3359615c91892f914f526cf6bfe316fc2ad55aff2",
    "prism-yaml.min.js": "719c8e8b8c344dc9de510c729f65ba840b1502a0a8e7e25e2ad19ee715f65c02",
}


def test_the_page_loads_no_other_resource(page: WebDriver) -> None:
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert console_errors(page) == []
    assert text(page, "new").startswith("torchsmith new")


def test_an_invalid_name_is_explained_while_it_is_typed(page: WebDriver) -> None:
    retype(page, "backend_name", "cuda")
    assert text(page, "backend_name-problem") == (
        "'cuda' is a device type of PyTorch's own: try 'my_cuda'"
    )
    field = page.find_element("id", "backend_name")
    assert field.get_attribute("aria-invalid") == "true"
    assert not page.find_element("id", "copy").is_enabled()
    retype(page, "backend_name", "acme")
    assert text(page, "backend_name-problem") == ""
    assert page.find_element("id", "copy").is_enabled()
    assert "backend_name=acme" in text(page, "new")


def test_required_features_are_shown_and_selected(page: WebDriver) -> None:
    pick(page, {"serving"})
    assert "Requires networks." in page.find_element("id", "features").text
    assert "on: required by serving" in page.find_element("id", "features").text
    assert "'features=[networks, serving]'" in text(page, "new")
    owned = catalog.features()["networks"].paths[0].lstrip("/")
    assert [path for path in shown(page) if path.startswith(owned)]
    feature(page, "serving").click()
    assert not [path for path in shown(page) if path.startswith(owned)]


def test_sizes_are_those_of_the_catalog(page: WebDriver) -> None:
    sizes = catalog.sizes()
    said = page.find_element("id", "presets").text
    for size in sizes["presets"].values():
        told = f"({size['files']:,} files, {size['lines']:,} lines, {size['build']} s to build"
        assert told in said
    amp = sizes["parts"]["amp"]
    told = f"{amp['files']:,} files, {amp['lines']:,} lines."
    assert told in page.find_element("id", "features").text


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_have_enough_contrast_and_fit_a_phone(
    dark: bool, content: dict[str, Any], tmp_path: Path
) -> None:
    """WCAG requires a contrast of 4.5 to 1 for text."""
    with chromium(width=500, height=900, dark=dark) as window:
        opened(window, content, tmp_path)
        query = "return matchMedia('(prefers-color-scheme: dark)').matches"
        assert window.execute_script(query) is dark
        pick(window, {"serving"})
        retype(window, "backend_name", "cuda")
        wide = "return [document.documentElement.scrollWidth, innerWidth]"
        needed, there = window.execute_script(wide)
        assert needed <= there
        low = window.execute_script(CONTRAST)
        assert len(low["seen"]) > 3
        assert low["weak"] == []


def test_both_commands_are_visible_on_a_phone_without_scrolling(
    content: dict[str, Any], tmp_path: Path
) -> None:
    with chromium() as window:
        phone = {"width": 375, "height": 667, "deviceScaleFactor": 1, "mobile": True}
        window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        for link in ("", "#name=acme_npu&features=amp,rng"):
            window.get("about:blank")
            opened(window, {**content, "source": "gh:a/b"}, tmp_path, link)
            size = window.execute_script("return [innerWidth, innerHeight, scrollY]")
            assert size == [375, 667, 0]
            for id in ("command", "copy", "new", "copy-new"):
                place = window.find_element("id", id).rect
                assert place["height"] > 0
                assert place["x"] >= 0
                assert place["x"] + place["width"] <= 375
                assert place["y"] + place["height"] <= 667


def test_copy_buttons_copy_their_commands(page: WebDriver) -> None:
    for button, id in (("copy", "command"), ("copy-new", "new")):
        page.execute_script(
            "navigator.clipboard.writeText = (text) => { window.copied = text; "
            "return Promise.resolve(); }"
        )
        page.find_element("id", button).click()
        assert page.execute_script("return window.copied") == text(page, id)


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("gh:acme/forge", "https://github.com/acme/forge/tree/HEAD/docs"),
        ("https://git.acme.example/forge.git", "https://git.acme.example/forge/tree/HEAD/docs"),
        ("/home/me/forge", None),
    ],
)
def test_the_documentation_is_linked_if_it_has_a_web_address(
    source: str, address: str | None, browser: WebDriver, content: dict[str, Any], tmp_path: Path
) -> None:
    opened(browser, {**content, "docs": build.documentation(source)}, tmp_path)
    links = browser.find_elements("link text", "Documentation")
    assert [link.get_attribute("href") for link in links] == ([address] if address else [])


def test_a_browser_without_decompressionstream_shows_an_error(
    content: dict[str, Any], tmp_path: Path
) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    (tmp_path / "index.html").write_text(build.page(content), "utf-8")
    with chromium() as window:
        source = {"source": "delete window.DecompressionStream"}
        window.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", source)
        window.get((tmp_path / "index.html").as_uri())
        main = window.find_element("tag name", "main")
        WebDriverWait(window, 10).until(lambda _: "DecompressionStream" in main.text)
        assert main.text == (
            "This page unpacks the template with DecompressionStream: open it in a browser "
            "from 2023 or later (DecompressionStream is not defined)."
        )


def test_the_page_does_not_depend_on_the_time(
    content: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = build.page(content)
    monkeypatch.setattr(time, "time", lambda: 1e9)
    assert build.page(content) == page


def test_one_command_builds_the_page(tmp_path: Path) -> None:
    out = tmp_path / "page" / "index.html"
    command = (sys.executable, "-m", "maintenance.site.build", "--source", "gh:acme/torchsmith")
    succeed(*command, "--out", out, cwd=ROOT)
    built = out.read_text("utf-8")
    found = re.search(r'id="data">\s*(\S+)\s*</script>', built)
    assert found
    unpacked = json.loads(gzip.decompress(base64.b64decode(found[1])))
    assert unpacked["source"] == "gh:acme/torchsmith"
    assert "/* page.js */" not in built


def test_the_commands_name_the_template_and_version_of_the_page(tmp_path: Path) -> None:
    """A release uses the repository's address, all else the checkout's path."""
    template = snapshot(tmp_path / "template")
    commands = build.data(template, "gh:a/b")
    assert (commands["source"], commands["version"]) == ("gh:a/b", "v1.0.0")
    assert build.source_of(template) == REPOSITORY
    (template / "NEWS").write_text("news\n")
    commit(template, "news")
    assert build.source_of(template) == str(template)
    version = build.data(template, str(template))["version"]
    place = ("--template", str(template), "--to", version)
    run_python("-m", "torchsmith", "new", "out", "--defaults", *place, cwd=tmp_path).passed()
    assert answers_in(tmp_path / "out")["_commit"].startswith("v1.0.0-1-g")


def test_libraries_match_their_published_checksums() -> None:
    found = {
        file.relative_to(build.VENDOR).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in build.VENDOR.rglob("*")
        if file.is_file()
    }
    assert found == PUBLISHED


def test_the_page_contains_the_code_and_licences_of_libraries() -> None:
    page = build.page({})
    for name in PUBLISHED:
        assert (build.VENDOR / name).read_text("utf-8").strip() in page, name
