"""What a user of the page reads and does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from browser import visit
from maintenance.site import build

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver


def opened(window: WebDriver, content: dict[str, Any], folder: Path, link: str = "") -> WebDriver:
    """Open the page of some content in a window, from a file."""
    file = folder / "index.html"
    file.write_text(build.page(content), "utf-8")
    visit(window, file.as_uri() + link)
    return window


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
