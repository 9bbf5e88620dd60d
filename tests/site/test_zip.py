"""The archive that the page makes is a render."""

from __future__ import annotations

import shutil
import stat
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from choosing import opened
from maintenance.site import build
from rendering import HOSTILE, Renderer, commit, contents

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.xdist_group("browser")


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
