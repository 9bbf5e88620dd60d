"""`python -m maintenance.site.build`: writes the page, one HTML file that works from any folder.

It contains renders of the presets with the name MARKER, which the page replaces by the chosen one.
Features own whole files, so the files of `full` and their owners give the tree of any choice.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from torchsmith import catalog
from torchsmith.git import address
from torchsmith.render import Job, render
from torchsmith.template import REPOSITORY, TEMPLATE

MARKER = "zq_name"
"""A name that occurs in no file, and whose forms in upper case, in prose and with a dash differ."""

PAGE = Path(__file__).parent / "page"
VENDOR = Path(__file__).parent / "vendor" / "prism"
# In order: a language of prism may extend those before it.
LANGUAGES = ("core", "clike", "c", "cpp", "python", "yaml", "toml")
PRISM = ("LICENSE", *(f"prism-{language}.min.js" for language in LANGUAGES))
SCRIPTS = ("data.js", "command.js", "link.js", "tree.js", "file.js", "page.js")

Texts = dict[str, str]
"""Files by path."""


def rendered(template: Path, source: str, **answers: str) -> Texts:
    """Return the files for some answers, as if the template were at ``source``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "project")
        render(folder, Job({"backend_name": MARKER, **answers}, str(template)))
        return {
            path.relative_to(folder).as_posix(): path.read_text("utf-8").replace(
                str(template), source
            )
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


def owners(paths: list[str]) -> dict[str, str]:
    """Return the feature that owns each file and folder, without those that none owns."""
    places = catalog.places(f"torch_{MARKER}")
    every = {each for path in map(PurePosixPath, paths) for each in (path, *path.parents)}
    found = {str(path): catalog.owner(path, places) for path in sorted(every)}
    return {path: owner for path, owner in found.items() if owner}


def tagged(template: Path) -> str:
    """Return the release tag of a template's commit, or ""."""
    command = ["git", "describe", "--tags", "--exact-match"]
    return subprocess.run(command, cwd=template, capture_output=True, text=True).stdout.strip()


def source_of(template: Path) -> str:
    """Return the address of a template for users: the repository for a release, or its path."""
    return REPOSITORY if tagged(template) else str(template)


def data(template: Path, source: str) -> dict[str, Any]:
    """Return all that the page shows.

    Args:
        template: The repository's folder.
        source: The address that users pass to the commands.
    """
    presets = {preset: rendered(template, source, preset=preset) for preset in catalog.presets()}
    whole = presets["full"]
    # Files that are not in `minimal`, as rendered for its device.
    starter = rendered(template, source, preset="full", device="starter")
    presets["minimal"] = {**starter, **presets["minimal"]}
    features = catalog.features()
    names = catalog.load("reserved")["reserved"]["default"]
    reserved = sorted({name for group in names for name in group["names"].split()})
    return {
        "source": source,
        "docs": documentation(source),
        "version": tagged(template) or "HEAD",
        "marker": MARKER,
        "name": {
            key: catalog.load("questions")["backend_name"][key] for key in ("default", "help")
        },
        "reserved": {name: catalog.name_problem(name) for name in reserved},
        "features": {
            id: {
                "group": feature.group,
                "title": feature.title,
                "help": feature.help,
                "requires": feature.requires,
                **catalog.sizes()["parts"][id],
            }
            for id, feature in features.items()
        },
        "presets": {
            id: {"title": title, "features": [each for each in features if each in on]}
            for title, id in catalog.load("questions")["preset"]["choices"].items()
            if (on := catalog.presets().get(id)) is not None
        },
        "owners": owners(list(whole)),
        "files": {
            path: {
                "text": text,
                "features": [
                    id
                    for id, feature in features.items()
                    if feature.owns(PurePosixPath(path), f"torch_{MARKER}")
                ],
                # The texts of presets that differ from `full`.
                "presets": {
                    preset: texts[path]
                    for preset, texts in presets.items()
                    if texts.get(path, text) != text
                },
            }
            for path, text in whole.items()
        },
    }


def documentation(source: str) -> str | None:
    """Return the web address of a template's documentation, or None if it has none."""
    place = address(source)
    return f"{place.removesuffix('.git')}/tree/HEAD/docs" if place.startswith("https://") else None


def packed(content: dict[str, Any]) -> str:
    """Return the data as page/data.js unpacks it; equal content gives equal text."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def page(content: dict[str, Any]) -> str:
    """Return the page with its style, its scripts and its data in it."""
    text = (PAGE / "index.html").read_text("utf-8")
    # The page contains the library, so it has to contain its licence.
    licence, *codes = ((VENDOR / name).read_text("utf-8").strip() for name in PRISM)
    text = text.replace("/* prism */", "\n".join([f"/*\n{licence}\n*/", *codes]))
    text = text.replace("/* style.css */", (PAGE / "style.css").read_text("utf-8"))
    for name in SCRIPTS:
        # Comments are not needed in the page.
        script = re.sub(r"^ *//.*\n", "", (PAGE / name).read_text("utf-8"), flags=re.MULTILINE)
        text = text.replace(f"/* {name} */", script)
    return text.replace("/* data */", packed(content))


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m maintenance.site.build", description=__doc__)
    parser.add_argument(
        "--source",
        help="the template's address; by default the repository's for a release, else this folder",
    )
    parser.add_argument("--out", type=Path, default=TEMPLATE / "build" / "page" / "index.html")
    arguments = parser.parse_args()
    source = arguments.source or source_of(TEMPLATE)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(page(data(TEMPLATE, source)), encoding="utf-8")
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
