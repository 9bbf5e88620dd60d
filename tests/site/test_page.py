"""The page in use: by mouse, by keyboard, on a phone."""

from __future__ import annotations

import copy
import gzip
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from browser import chromium, visit
from rendering import ROOT, Renderer, contents
from torchsmith import tables
from torchsmith.site import build
from torchsmith.site.compile import UnknownConstructError, compile_template

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.xdist_group("browser")

COPIER = Path(sys.executable).with_name("copier")


def text(page: WebDriver, id: str) -> str:
    found = page.execute_script("return document.getElementById(arguments[0]).textContent", id)
    assert isinstance(found, str)
    return found


def shown(page: WebDriver) -> set[str]:
    """The files in the tree, open or not."""
    files = "document.querySelectorAll('#tree [role=treeitem]:not([aria-expanded])')"
    return set(page.execute_script(f"return [...{files}].map((it) => it.dataset.path)"))


def retype(page: WebDriver, id: str, value: str) -> None:
    field = page.find_element("id", id)
    field.clear()
    field.send_keys(value)


def unfold(page: WebDriver) -> None:
    page.execute_script("document.querySelectorAll('form details').forEach((it) => it.open = true)")


def feature(page: WebDriver, id: str) -> Any:
    return page.find_element("css selector", f"input[name=features][value={id}]")


def test_it_needs_nothing_but_itself(page: WebDriver) -> None:
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert text(page, "command").startswith("copier copy")


def test_the_tree_follows_a_feature_that_is_toggled_with_the_keyboard(
    page: WebDriver, render: Renderer
) -> None:
    full, without = (
        set(contents(render(**answers)))
        for answers in ({"preset": "full"}, {"features": ["rng", "storage"]})
    )
    assert shown(page) == full
    box = feature(page, "amp")
    box.send_keys(" ")
    assert not box.is_selected()
    assert shown(page) == without
    assert text(page, "count") == f"{len(without)} files"
    assert "'features=[rng, storage]'" in text(page, "command")
    box.send_keys(" ")
    assert shown(page) == full


def test_a_file_is_shown_as_it_would_be_rendered(page: WebDriver, render: Renderer) -> None:
    unfold(page)
    retype(page, "backend_name", "acme")
    retype(page, "vendor", "Acme & Sons")
    project = render(preset="full", backend_name="acme", vendor="Acme & Sons")
    # With the keyboard alone: open the folder, then the file.
    for path in ("python", "python/torch_acme", "python/torch_acme/__init__.py"):
        entry = page.find_element("css selector", f"#tree [data-path='{path}']")
        entry.send_keys("\n")
    assert text(page, "path") == "python/torch_acme/__init__.py"
    assert text(page, "content") == (project / "python/torch_acme/__init__.py").read_text("utf-8")
    # It stays while other answers change.
    feature(page, "rng").click()
    assert text(page, "path") == "python/torch_acme/__init__.py"


def test_the_tree_is_walked_with_arrow_keys(page: WebDriver) -> None:
    from selenium.webdriver.common.keys import Keys

    def press(*keys: str) -> str | None:
        for key in keys:
            page.switch_to.active_element.send_keys(key)
        return page.switch_to.active_element.get_attribute("data-path")

    page.find_element("id", "filter").send_keys(Keys.TAB)
    assert press() == ".github"
    # A closed folder is passed by; an open one is entered, left, and closed.
    following = press(Keys.ARROW_DOWN)
    assert following is not None
    assert "/" not in following
    assert press(Keys.ARROW_UP) == ".github"
    assert press(Keys.ARROW_RIGHT) == ".github"
    assert page.switch_to.active_element.get_attribute("aria-expanded") == "true"
    assert press(Keys.ARROW_RIGHT) == ".github/workflows"
    assert press(Keys.ARROW_LEFT, Keys.ARROW_LEFT) == ".github"
    assert page.switch_to.active_element.get_attribute("aria-expanded") == "false"
    assert press(Keys.END) == "pyproject.toml"
    assert press(Keys.ARROW_DOWN) == "pyproject.toml"
    assert press("r") == "README.md"
    assert press(Keys.HOME, "d") == "device"
    assert press("d") == "docs"
    # The file is shown, and is what the tab key comes back to.
    assert press("l", " ") == "LICENSE"
    assert text(page, "path") == "LICENSE"
    selected = page.find_elements("css selector", "#tree [aria-selected=true]")
    assert [item.get_attribute("data-path") for item in selected] == ["LICENSE"]
    page.find_element("id", "filter").send_keys(Keys.TAB)
    assert press() == "LICENSE"
    stops = "return document.querySelectorAll('#tree [tabindex=\"0\"]').length"
    assert page.execute_script(stops) == 1


def test_assistive_technology_is_told_of_a_tree(page: WebDriver) -> None:
    """By the browser's own account of accessibility."""
    folder = page.find_element("css selector", "#tree [data-path=csrc]")
    assert (folder.aria_role, folder.accessible_name) == ("treeitem", "csrc")
    owned = page.find_element("css selector", "#tree [data-path='csrc/amp']")
    assert owned.get_attribute("aria-label") == "amp, amp"
    tree = page.find_element("id", "tree")
    assert (tree.aria_role, tree.accessible_name) == ("tree", "torch-foo")


def test_the_filter_leaves_the_files_that_have_its_words(page: WebDriver) -> None:
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


def test_colours_change_no_letter_of_a_file(page: WebDriver) -> None:
    unfold(page)
    retype(page, "vendor", "Acme\xa0& <b>Söhne</b>")
    ask = """
        return [...torchsmith.render(answersGiven())].filter(([path, text]) => {
          choose(path);
          return document.getElementById("content").textContent !== text;
        }).map(([path]) => path);
    """
    assert page.execute_script(ask) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", ["csrc/amp/autocast.cpp", "pyproject.toml", "mkdocs.yml"])
def test_colours_stand_out(path: str, dark: bool, content: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(build.page(content), "utf-8")
    with chromium(dark=dark) as window:
        visit(window, f"{(tmp_path / 'index.html').as_uri()}#file={path}")
        assert text(window, "path") == path
        found = window.execute_script(CONTRAST)
        tokens = window.find_elements("css selector", "#content .token")
        colours = {token.value_of_css_property("color") for token in tokens[:60]}
        assert len(colours) >= 2
        assert found["weak"] == []


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
    (tmp_path / "index.html").write_text(build.page(changed), "utf-8")
    visit(browser, (tmp_path / "index.html").as_uri())
    assert text(browser, "command").count("-d ") == 1
    assert "-d backend_name=acme" in text(browser, "command")
    asked = browser.execute_script("return answersGiven()")
    assert asked["vendor"] == "Acme"
    assert asked["dtypes"] == ["bool", "int64", "float32"]
    assert (asked["license"], asked["ci_provider"]) == ("mit", "none")
    unfold(browser)
    retype(browser, "vendor", "Acme & Sons")
    assert text(browser, "vendor-problem") == "vendor is longer than 5 characters"


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
    page.refresh()
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
    page.refresh()
    assert page.execute_script(CHOSEN) == chosen


def test_a_link_keeps_a_name_that_cannot_be(page: WebDriver) -> None:
    retype(page, "backend_name", "cuda")
    page.refresh()
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
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("preset", ["gone", "constructor"])
def test_a_preset_that_is_not_there_is_every_feature(preset: str, page: WebDriver) -> None:
    visit(page, f"{page.current_url.partition('#')[0]}#preset={preset}")
    assert page.execute_script("return answersGiven().preset") == "full"


@pytest.mark.parametrize("way", ["copier", "torchsmith", "answers file"])
def test_what_is_taken_along_renders_what_is_shown(
    way: str, page: WebDriver, tmp_path: Path, render: Renderer
) -> None:
    unfold(page)
    retype(page, "backend_name", "acme")
    retype(page, "vendor", 'O\'Neill $HOME "x" #1: y')
    feature(page, "storage").click()
    page.find_element("css selector", "input[name=dtypes][value=complex128]").click()
    page.find_element("css selector", "#license option[value=mit]").click()
    words = shlex.split(text(page, "new" if way == "torchsmith" else "command"))
    assert words[0] == ("torchsmith" if way == "torchsmith" else "copier")
    assert "v1.0.0" in words
    if way == "answers file":
        answers = page.execute_script("return torchsmith.answersFile(answersGiven())")
        assert yaml.safe_load(answers)["vendor"] == 'O\'Neill $HOME "x" #1: y'
        (tmp_path / "answers.yml").write_text(answers, "utf-8")
        words = ["copier", "copy", "--vcs-ref", "HEAD", "--defaults", "--data-file", "answers.yml"]
        words += [str(render.template), "torch-acme"]
    if way == "torchsmith":
        command = [sys.executable, "-m", "torchsmith.cli", *words[1:]]
    else:
        command = [COPIER, *words[1:], "--quiet"]
    where = {**os.environ, "PYTHONPATH": str(ROOT / "generator")}
    subprocess.run(command, cwd=tmp_path, env=where, check=True)
    written = contents(tmp_path / "torch-acme")
    ask = """const written = torchsmith.render(answersGiven());
        return Object.fromEntries(arguments[0].map((path) => [path, written.get(path)]))"""
    paths = ["README.md", "LICENSE", ".copier-answers.yml", "pyproject.toml", "CMakeLists.txt"]
    seen = page.execute_script(ask, paths)
    assert seen == {path: written[path].decode() for path in paths}
    assert shown(page) == set(written)


def test_what_a_feature_requires_is_shown_and_comes_along(
    browser: WebDriver, content: dict[str, Any], tmp_path: Path
) -> None:
    changed = copy.deepcopy(content)
    first, second = list(tables.features())[:2]
    changed["catalog"]["values"]["catalog"][first]["requires"] = [second]
    (tmp_path / "index.html").write_text(build.page(changed), "utf-8")
    visit(browser, (tmp_path / "index.html").as_uri())
    assert f"Requires {second}." in browser.find_element("id", "features").text
    browser.find_element("id", "none").click()
    owned = tables.features()[second].paths[0].lstrip("/")
    assert not [path for path in shown(browser) if path.startswith(owned)]
    feature(browser, first).click()
    assert f"on: required by {first}" in browser.find_element("id", "features").text
    assert [path for path in shown(browser) if path.startswith(owned)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_stand_out_and_nothing_is_cut_off_on_a_phone(
    dark: bool, content: dict[str, Any], tmp_path: Path
) -> None:
    """By WCAG's measure of contrast: 4.5 to 1 for text."""
    (tmp_path / "index.html").write_text(build.page(content), "utf-8")
    with chromium(width=500, height=900, dark=dark) as window:
        visit(window, (tmp_path / "index.html").as_uri())
        query = "return matchMedia('(prefers-color-scheme: dark)').matches"
        assert window.execute_script(query) is dark
        retype(window, "backend_name", "cuda")
        wide = "return [document.documentElement.scrollWidth, innerWidth]"
        needed, there = window.execute_script(wide)
        assert needed <= there
        low = window.execute_script(CONTRAST)
        assert len(low["seen"]) > 3
        assert low["weak"] == []


@pytest.mark.parametrize("link", ["", "#backend_name=acme_npu&features=amp,rng&license=mit"])
def test_both_commands_are_seen_on_a_phone_without_scrolling(
    link: str, content: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text(build.page({**content, "source": "gh:a/b"}), "utf-8")
    with chromium() as window:
        phone = {"width": 375, "height": 667, "deviceScaleFactor": 1, "mobile": True}
        window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        visit(window, (tmp_path / "index.html").as_uri() + link)
        size = window.execute_script("return [innerWidth, innerHeight, scrollY]")
        assert size == [375, 667, 0]
        for id in ("command", "copy", "new", "copy-new"):
            place = window.find_element("id", id).rect
            assert place["height"] > 0
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= 375
            assert place["y"] + place["height"] <= 667


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
    (tmp_path / "index.html").write_text(build.page(build.data(render.template, source)), "utf-8")
    visit(browser, (tmp_path / "index.html").as_uri())
    links = browser.find_elements("link text", "Documentation")
    assert [link.get_attribute("href") for link in links] == ([address] if address else [])


def test_copying_gives_the_command_of_the_button(page: WebDriver) -> None:
    for button, id in (("copy", "command"), ("copy-new", "new")):
        page.execute_script(
            "navigator.clipboard.writeText = (text) => { window.copied = text; "
            "return Promise.resolve(); }"
        )
        page.find_element("id", button).click()
        assert page.execute_script("return window.copied") == text(page, id)


CONTRAST = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const light = (color) => {
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (color !== "rgba(0, 0, 0, 0)") return color;
  }
  return "white";
};
const seen = new Set();
const weak = [];
for (const element of document.querySelectorAll("body *:not(script):not(noscript):not(option)")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const paused = ":disabled, .wrong .command, .wrong #files *";
  if (!own || !element.checkVisibility() || element.matches(paused)) continue;
  const [front, back] = [getComputedStyle(element).color, behind(element)];
  const [high, low] = [light(front), light(back)].sort((one, other) => other - one);
  const ratio = (high + 0.05) / (low + 0.05);
  seen.add(front);
  if (ratio < 4.5) weak.push(`${element.tagName} #${element.id}: ${front} on ${back}`);
}
return {seen: [...seen], weak};
"""


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


def test_it_is_under_600_kb_compressed(content: dict[str, Any]) -> None:
    assert len(gzip.compress(build.page(content).encode())) < 600_000


def test_it_is_built_by_one_command(tmp_path: Path) -> None:
    out = tmp_path / "page" / "index.html"
    command = [sys.executable, "-m", "torchsmith.site.build", "--source", "gh:acme/torchsmith"]
    subprocess.run([*command, "--out", out], cwd=ROOT, check=True, capture_output=True)
    built = out.read_text("utf-8")
    assert '"source":"gh:acme/torchsmith"' in built
    assert "/* page.js */" not in built
