"""Measures the page in a headless browser."""

from __future__ import annotations

import gzip
import shutil
import statistics
from pathlib import Path

from selenium import webdriver

from benchmarks.figures import Row
from maintenance.site import build
from torchsmith.template import REPOSITORY

# Milliseconds from the navigation until the first content is painted.
PAINTED = """
return performance.getEntriesByName("first-contentful-paint")[0].startTime;
"""
# Milliseconds from the navigation until the files are unpacked and shown.
SHOWN = """
const done = arguments[0];
(function look() {
  if (window.torchsmith) done(performance.now());
  else setTimeout(look);
})();
"""
# Milliseconds from the click until the frame that shows its effects.
TOGGLED = """
const [box, done] = [document.querySelector("input[name=features]"), arguments[0]];
const start = performance.now();
box.click();
requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
"""


def browsing(scratch: Path, template: Path) -> list[Row]:
    """Measure the page if there is a browser: medians of seven runs."""
    text = build.page(build.data(template, REPOSITORY))
    size = Row("the page, compressed", len(gzip.compress(text.encode())) / 1000, None, "kB")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        return [size]
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    file = scratch / "page.html"
    file.write_text(text, "utf-8")
    painted, shown, toggled = [], [], []
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as window:
        for _ in range(7):
            window.get("about:blank")
            window.get(file.as_uri())
            shown.append(window.execute_async_script(SHOWN))
            painted.append(window.execute_script(PAINTED))
            toggled.append(window.execute_async_script(TOGGLED))
    return [
        size,
        Row("the page's first paint", statistics.median(painted), 300, "ms"),
        Row("the page's files are shown", statistics.median(shown) / 1000, 0.5, "s"),
        Row("a feature toggled on it", statistics.median(toggled), 100, "ms"),
    ]
