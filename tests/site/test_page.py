"""The page as a whole: what it asks, what it shows, and that it can be read."""

from __future__ import annotations

import base64
import copy
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
    complaints,
    feature,
    opened,
    retype,
    shown,
    text,
    unfold,
)  # fmt: skip
from commanding import succeed
from maintenance.site import build
from maintenance.site.compile import UnknownConstructError, compile_template
from rendering import ROOT, Renderer
from torchsmith import catalog

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.xdist_group("browser")

# As `npm pack` gives them: components of prismjs 1.30.0. Of fflate 0.8.3 the page has what it uses,
# `export {strToU8, zipSync} from "fflate"`, as esbuild 0.28.2 gives it with --bundle --minify
# --format=iife --global-name=fflate --legal-comments=none.
PUBLISHED = {
    "fflate/LICENSE": "0a1df3a083d0c010560aa342e87959c8c1070e6fd54545741f083f22d0c8b551",
    "fflate/fflate.js": "2373e7a4695582c52afb3a04f1eaa41ce7eccaebcf181ad18a0538452c5c308a",
    "prism/LICENSE": "2b947f0901a7ffcf08a89957da9783c0e9c6e72cb6ce8e959f501ab5409e4d2b",
    "prism/prism-c.min.js": "9e05cf21207bff46afbf80cb8f43bb58bc4a4a87b68f28bc0470342f69345209",
    "prism/prism-clike.min.js": "c76ba4e240932bdc75546be30e550f5ba5e13815ff71511c76e9e27ac3072444",
    "prism/prism-core.min.js": "6caad316dd991f24f8004e0b9c19c055cb5829ff65e973fbee406f96d81b8e7e",
    "prism/prism-cpp.min.js": "12077d9ea67882c149066e94843a6ede9036994b3724bfc45b31d97619328e14",
    "prism/prism-python.min.js": "ed4385685bcf2d4935c8dbbab4bde16603da1329e092d2bf36c3dadd67e9a85c",
    "prism/prism-toml.min.js": "bc71428fec2670d59cda5ad3359615c91892f914f526cf6bfe316fc2ad55aff2",
    "prism/prism-yaml.min.js": "719c8e8b8c344dc9de510c729f65ba840b1502a0a8e7e25e2ad19ee715f65c02",
}


def test_it_needs_nothing_but_itself(page: WebDriver) -> None:
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert complaints(page) == []
    assert text(page, "command").startswith("copier copy")


def test_a_name_that_cannot_be_is_explained_as_it_is_typed(page: WebDriver) -> None:
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
    assert "backend_name=acme" in text(page, "command")


def test_texts_follow_the_name_until_they_are_typed(page: WebDriver) -> None:
    unfold(page)
    retype(page, "backend_name", "acme_npu")
    assert page.find_element("id", "display_name").get_attribute("value") == "Acme Npu"
    retype(page, "display_name", "ACME")
    retype(page, "backend_name", "acme")
    assert page.find_element("id", "display_name").get_attribute("value") == "ACME"
    retype(page, "vendor", " ")
    assert text(page, "vendor-problem") == "vendor is empty"


def test_defaults_and_limits_are_the_templates(
    browser: WebDriver, content: dict[str, Any], tmp_path: Path
) -> None:
    changed = copy.deepcopy(content)
    questions = changed["catalog"]["questions"]
    for name, default in {
        "backend_name": "acme", "vendor": "Acme", "license": "mit", "ci_provider": "none",
        "preset": "minimal", "dtypes": "[bool, int64, float32]",
    }.items():  # fmt: skip
        questions[name]["default"] = compile_template(default, name)
    limit = "{= names.text_problem('vendor', vendor, 5) | trim =}"
    questions["vendor"]["validator"] = compile_template(limit, "vendor")
    opened(browser, changed, tmp_path)
    assert text(browser, "command").count("-d ") == 1
    assert "-d backend_name=acme" in text(browser, "command")
    asked = browser.execute_script("return answersGiven()")
    assert asked["vendor"] == "Acme"
    assert asked["dtypes"] == ["bool", "int64", "float32"]
    assert (asked["license"], asked["ci_provider"]) == ("mit", "none")
    unfold(browser)
    retype(browser, "vendor", "Acme & Sons")
    assert text(browser, "vendor-problem") == "vendor is longer than 5 characters"


def test_what_a_feature_requires_is_shown_and_comes_along(
    browser: WebDriver, content: dict[str, Any], tmp_path: Path
) -> None:
    changed = copy.deepcopy(content)
    first, second = list(catalog.features())[:2]
    changed["catalog"]["values"]["catalog"][first]["requires"] = [second]
    opened(browser, changed, tmp_path)
    assert f"Requires {second}." in browser.find_element("id", "features").text
    browser.find_element("id", "none").click()
    owned = catalog.features()[second].paths[0].lstrip("/")
    assert not [path for path in shown(browser) if path.startswith(owned)]
    feature(browser, first).click()
    assert f"on: required by {first}" in browser.find_element("id", "features").text
    assert [path for path in shown(browser) if path.startswith(owned)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_stand_out_and_nothing_is_cut_off_on_a_phone(
    dark: bool, content: dict[str, Any], tmp_path: Path
) -> None:
    """By WCAG's measure of contrast: 4.5 to 1 for text."""
    with chromium(width=500, height=900, dark=dark) as window:
        opened(window, content, tmp_path)
        query = "return matchMedia('(prefers-color-scheme: dark)').matches"
        assert window.execute_script(query) is dark
        retype(window, "backend_name", "cuda")
        wide = "return [document.documentElement.scrollWidth, innerWidth]"
        needed, there = window.execute_script(wide)
        assert needed <= there
        low = window.execute_script(CONTRAST)
        assert len(low["seen"]) > 3
        assert low["weak"] == []


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("gh:acme/forge", "https://github.com/acme/forge/tree/HEAD/docs"),
        ("https://git.acme.example/forge.git", "https://git.acme.example/forge/tree/HEAD/docs"),
        ("/home/me/forge", None),
    ],
)
def test_the_documentation_is_linked_where_it_is_on_the_web(
    source: str, address: str | None, browser: WebDriver, render: Renderer, tmp_path: Path
) -> None:
    opened(browser, build.data(render.template, source), tmp_path)
    links = browser.find_elements("link text", "Documentation")
    assert [link.get_attribute("href") for link in links] == ([address] if address else [])


def test_a_browser_that_cannot_unpack_is_told_what_it_lacks(
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


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{= backend_name | shuffle =}", "x.h: .* cannot do the filter 'shuffle'"),
        ("#% macro f()\n#% endmacro\n", "cannot do the statement 'Macro'"),
        ("{= a * b =}", "cannot do the expression 'Mul"),
        ("{= a | to_json(indent=1) =}", "cannot do the filter 'to_json' as it is used"),
    ],
)
def test_a_template_that_the_page_cannot_render_is_refused(source: str, words: str) -> None:
    with pytest.raises(UnknownConstructError, match=words):
        compile_template(source, "x.h")


def test_the_same_template_gives_the_same_page_at_any_time(
    content: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = build.page(content)
    monkeypatch.setattr(time, "time", lambda: 1e9)
    assert build.page(content) == page


def test_it_is_built_by_one_command(tmp_path: Path) -> None:
    out = tmp_path / "page" / "index.html"
    command = (sys.executable, "-m", "maintenance.site.build", "--source", "gh:acme/torchsmith")
    succeed(*command, "--out", out, cwd=ROOT)
    built = out.read_text("utf-8")
    found = re.search(r'id="data">\s*(\S+)\s*</script>', built)
    assert found
    unpacked = json.loads(gzip.decompress(base64.b64decode(found[1])))
    assert unpacked["source"] == "gh:acme/torchsmith"
    assert "/* page.js */" not in built


def test_its_libraries_are_the_published_ones() -> None:
    found = {
        file.relative_to(build.VENDOR).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in build.VENDOR.rglob("*")
        if file.is_file()
    }
    assert found == PUBLISHED


def test_the_code_and_licences_of_libraries_are_in_the_page() -> None:
    page = build.page({"files": []})
    for name in PUBLISHED:
        assert (build.VENDOR / name).read_text("utf-8").strip() in page, name
