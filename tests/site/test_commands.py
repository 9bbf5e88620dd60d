"""What is taken along from the page renders what was shown."""

from __future__ import annotations

import shlex
import shutil
import stat
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
import yaml

from choosing import chromium, feature, opened, retype, shown, text, unfold
from commanding import succeed
from maintenance.site import build
from rendering import HOSTILE, ROOT, Renderer, commit, contents

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.xdist_group("browser")


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
        words[:1] = [sys.executable, "-m", "torchsmith.cli"]
    succeed(*words, cwd=tmp_path, PYTHONPATH=str(ROOT / "generator"))
    written = contents(tmp_path / "torch-acme")
    ask = """const written = torchsmith.render(answersGiven());
        return Object.fromEntries(arguments[0].map((path) => [path, written.get(path)]))"""
    paths = ["README.md", "LICENSE", ".copier-answers.yml", "pyproject.toml", "CMakeLists.txt"]
    seen = page.execute_script(ask, paths)
    assert seen == {path: written[path].decode() for path in paths}
    assert shown(page) == set(written)


def test_both_commands_are_seen_on_a_phone_without_scrolling(
    content: dict[str, Any], tmp_path: Path
) -> None:
    with chromium() as window:
        phone = {"width": 375, "height": 667, "deviceScaleFactor": 1, "mobile": True}
        window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        for link in ("", "#backend_name=acme_npu&features=amp,rng&license=mit"):
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


def test_copying_gives_the_command_of_the_button(page: WebDriver) -> None:
    for button, id in (("copy", "command"), ("copy-new", "new")):
        page.execute_script(
            "navigator.clipboard.writeText = (text) => { window.copied = text; "
            "return Promise.resolve(); }"
        )
        page.find_element("id", button).click()
        assert page.execute_script("return window.copied") == text(page, id)


def test_unpacked_it_is_what_copier_renders(
    browser: WebDriver, render: Renderer, tmp_path: Path
) -> None:
    """With the browser's own download, and one file that is executable in the template."""
    template = tmp_path / "template"
    shutil.copytree(render.template, template)
    (template / "template/examples/quickstart.py.jinja").chmod(0o755)
    commit(template, "executable", tag="v1.0.1")
    project = Renderer(template, tmp_path).fresh(tmp_path / "project", **HOSTILE)

    answers = {**HOSTILE, "dtypes": ",".join(HOSTILE["dtypes"])}
    opened(browser, build.data(template, str(template)), tmp_path, f"#{urlencode(answers)}")
    folder = "torch-" + HOSTILE["backend_name"].replace("_", "-")
    first, second = (download(browser, tmp_path / name) for name in ("first", "second"))
    assert first.name == f"{folder}.zip"
    assert first.read_bytes() == second.read_bytes()

    with zipfile.ZipFile(first) as archive:
        packed = {entry.filename: archive.read(entry) for entry in archive.infolist()}
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    written = contents(project)
    assert packed == {f"{folder}/{path}": data for path, data in written.items()}
    assert modes == {
        f"{folder}/{path}": stat.S_IFREG | (0o755 if executable(project / path) else 0o644)
        for path in written
    }
    assert list(modes.values()).count(stat.S_IFREG | 0o755) == 1


def download(page: WebDriver, folder: Path) -> Path:
    """Press the button, and return the archive."""
    folder.mkdir()
    place = {"behavior": "allow", "downloadPath": str(folder)}
    page.execute_cdp_cmd("Browser.setDownloadBehavior", place)
    page.find_element("id", "zip").click()
    deadline = time.monotonic() + 60
    while not (found := list(folder.glob("*.zip"))):
        assert time.monotonic() < deadline, "no archive was downloaded"
        time.sleep(0.1)
    return found[0]


def executable(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IXUSR)
