"""What is taken along from the page renders what was shown."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from browser import chromium
from choosing import feature, opened, retype, shown, text, unfold
from rendering import ROOT, Renderer, contents

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.xdist_group("browser")

COPIER = Path(sys.executable).with_name("copier")


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
        command = [str(COPIER), *words[1:], "--quiet"]
    where = {**os.environ, "PYTHONPATH": str(ROOT / "generator")}
    subprocess.run(command, cwd=tmp_path, env=where, check=True)
    written = contents(tmp_path / "torch-acme")
    ask = """const written = torchsmith.render(answersGiven());
        return Object.fromEntries(arguments[0].map((path) => [path, written.get(path)]))"""
    paths = ["README.md", "LICENSE", ".copier-answers.yml", "pyproject.toml", "CMakeLists.txt"]
    seen = page.execute_script(ask, paths)
    assert seen == {path: written[path].decode() for path in paths}
    assert shown(page) == set(written)


@pytest.mark.parametrize("link", ["", "#backend_name=acme_npu&features=amp,rng&license=mit"])
def test_both_commands_are_seen_on_a_phone_without_scrolling(
    link: str, content: dict[str, Any], tmp_path: Path
) -> None:
    with chromium() as window:
        phone = {"width": 375, "height": 667, "deviceScaleFactor": 1, "mobile": True}
        window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        opened(window, {**content, "source": "gh:a/b"}, tmp_path, link)
        size = window.execute_script("return [innerWidth, innerHeight, scrollY]")
        assert size == [375, 667, 0]
        for id in ("command", "copy", "new", "copy-new"):
            place = window.find_element("id", id).rect
            assert place["height"] > 0
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= 375
            assert place["y"] + place["height"] <= 667


def test_copying_gives_the_command_of_the_button(page: WebDriver) -> None:
    for button, id in (("copy", "command"), ("copy-new", "new")):
        page.execute_script(
            "navigator.clipboard.writeText = (text) => { window.copied = text; "
            "return Promise.resolve(); }"
        )
        page.find_element("id", button).click()
        assert page.execute_script("return window.copied") == text(page, id)
