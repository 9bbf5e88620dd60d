"""A headless Chromium, which `.ci/run` installs, and the actions of a user of the page."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maintenance.site import build

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium(*, width: int = 1400, height: int = 1000, dark: bool = False) -> Iterator[WebDriver]:
    """Open a browser window."""
    from selenium import webdriver

    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "there is no Chromium: apt-get install chromium chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = found
    # As root, as on many CI machines, Chromium only starts without its sandbox.
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
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    window = webdriver.Chrome(options=options, service=service)
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


def console_errors(window: WebDriver) -> list[Any]:
    """Return the errors of the page's scripts from the browser's console."""
    log = window.get_log("browser")  # type: ignore[no-untyped-call]
    return [entry for entry in log if entry["level"] == "SEVERE"]


def opened(window: WebDriver, content: dict[str, Any], folder: Path, link: str = "") -> WebDriver:
    """Write a page of some content to a file, and open it in a window."""
    file = folder / "index.html"
    file.write_text(build.page(content), "utf-8")
    visit(window, file.as_uri() + link)
    return window


def text(page: WebDriver, id: str) -> str:
    found = page.execute_script("return document.getElementById(arguments[0]).textContent", id)
    assert isinstance(found, str)
    return found


def shown(page: WebDriver) -> set[str]:
    """Return the files in the tree, open or not."""
    files = "document.querySelectorAll('#tree [role=treeitem]:not([aria-expanded])')"
    return set(page.execute_script(f"return [...{files}].map((it) => it.dataset.path)"))


def retype(page: WebDriver, id: str, value: str) -> None:
    field = page.find_element("id", id)
    field.clear()
    field.send_keys(value)


def feature(page: WebDriver, id: str) -> Any:
    return page.find_element("css selector", f"input[name=features][value={id}]")


def pick(page: WebDriver, features: Collection[str]) -> None:
    """Choose these features, and no others."""
    page.find_element("css selector", "input[value=minimal]").click()
    for id in features:
        feature(page, id).click()


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
