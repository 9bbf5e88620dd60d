"""The page of the working tree's template, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from choosing import chromium, opened
from maintenance.site import build
from rendering import Renderer

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver


@pytest.fixture(scope="session")
def content(render: Renderer) -> dict[str, Any]:
    return build.data(render.template, str(render.template))


@pytest.fixture(scope="session")
def browser() -> Iterator[WebDriver]:
    with chromium() as window:
        yield window


@pytest.fixture
def page(browser: WebDriver, content: dict[str, Any], tmp_path: Path) -> WebDriver:
    """Return the page, newly opened from a file."""
    return opened(browser, content, tmp_path)
