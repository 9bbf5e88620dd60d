"""A headless Chromium, for tests of pages; `.ci/run` installs it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium(*, width: int = 1400, height: int = 1000, dark: bool = False) -> Iterator[WebDriver]:
    """Open a browser window, or skip the test where there is no browser."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium drives the browser")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    if not found or not driver:
        pytest.skip("there is no Chromium here: apt-get install chromium chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = found
    # As root, as on many CI machines, Chromium starts without its sandbox only.
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        f"--window-size={width},{height}",
        *(["--blink-settings=preferredColorScheme=0"] if dark else []),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = selenium.ChromeService(driver)
    window = selenium.Chrome(options=options, service=service)
    try:
        yield window
    finally:
        window.quit()


def visit(window: WebDriver, address: str) -> None:
    """Open the choosing page, and wait until it has unpacked and shown the template."""
    window.get(address)
    _wait(window, address.partition("#")[0])


def reload(window: WebDriver) -> None:
    """Reload the choosing page, and wait as `visit` does."""
    window.refresh()
    _wait(window, window.current_url.partition("#")[0])


def _wait(window: WebDriver, page: str) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    there = "return Boolean(window.torchsmith) && location.href.startsWith(arguments[0])"
    WebDriverWait(window, 60).until(lambda it: it.execute_script(there, page))


def complaints(window: WebDriver) -> list[Any]:
    """What the page's scripts failed at, as the browser's console has it."""
    log = window.get_log("browser")  # type: ignore[no-untyped-call]
    return [entry for entry in log if entry["level"] == "SEVERE"]
