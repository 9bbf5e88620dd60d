"""The libraries in the page are the published ones, and their licences come along."""

from __future__ import annotations

import hashlib

from maintenance.site import build

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


def test_they_are_the_published_ones() -> None:
    found = {
        file.relative_to(build.VENDOR).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in build.VENDOR.rglob("*")
        if file.is_file()
    }
    assert found == PUBLISHED


def test_their_code_and_licences_are_in_the_page() -> None:
    page = build.page({"files": []})
    for name in PUBLISHED:
        assert (build.VENDOR / name).read_text("utf-8").strip() in page, name
