"""`python -m maintenance.site.build`: writes the page, one HTML file that works from any folder."""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from maintenance.site.compile import compile_macros, compile_template
from torchsmith import catalog
from torchsmith.git import address
from torchsmith.template import REPOSITORY, TEMPLATE

PAGE = Path(__file__).parent / "page"
VENDOR = Path(__file__).parent / "vendor"
# In order: a language of prism may extend those before it.
LIBRARIES = {
    "fflate": ("fflate.js",),
    "prism": tuple(
        f"prism-{part}.min.js" for part in ("core", "clike", "c", "cpp", "python", "yaml", "toml")
    ),
}
LICENSES = "generator/catalog/licenses"
USED_MACROS = {"name_problem", "name_clash", "suggest", "text_problem"}
# Checks of the command line and of the folder, which the page does not have.
SILENT = ("answers_problem", "destination_problem")
SCRIPTS = (
    "jinja.js",
    "data.js",
    "template.js",
    "command.js",
    "zip.js",
    "link.js",
    "tree.js",
    "file.js",
    "page.js",
)
# Variables of copier that are not answers.
OUTSIDE = {"answers_file": ".copier-answers.yml", "dst_path": "", "data": {}}


def files(template: Path) -> list[dict[str, Any]]:
    """Return the template's files: path, mode, and content as text or as a compiled template."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "template"],
        cwd=template,
        check=True,
        capture_output=True,
        text=True,
    )
    found = []
    for name in sorted(set(filter(None, listed.stdout.split("\0")))):
        source = template / name
        if not source.exists():
            continue
        text = source.read_text("utf-8")
        path = name.removeprefix("template/").removesuffix(".jinja")
        found.append(
            {
                "path": compile_template(path, name),
                "executable": bool(source.stat().st_mode & stat.S_IXUSR),
                "content": compile_template(text, name) if name.endswith(".jinja") else text,
            }
        )
    return found


def catalog_data(template: Path) -> dict[str, Any]:
    """Return what the page needs of the catalog: questions, computed values, checks, pruning."""
    names = (template / "generator" / "catalog" / "names.jinja").read_text("utf-8")
    values: dict[str, Any] = {}
    for topic in ("features", "moved", "dtypes", "torch", "reserved", "operators", "sizes"):
        values.update({name: row["default"] for name, row in catalog.load(topic).items()})
    values["known_answers"] = list(catalog.questions())
    values["catalog"] = catalog.rows()
    computed = {
        name: {
            "yaml": row["type"] == "yaml",
            "template": compile_template(row["default"], f"computed.yml: {name}"),
        }
        for name, row in catalog.load("computed").items()
    }
    macros = compile_macros(names, USED_MACROS) | {name: [[], []] for name in SILENT}
    exclude = catalog.load("settings")["_exclude"]
    return {
        "values": values,
        "computed": computed,
        "macros": macros,
        "exclude": [compile_template(pattern, "_exclude") for pattern in exclude],
        "includes": {
            f"{LICENSES}/{file.name}": compile_template(file.read_text("utf-8"), file.name)
            for file in sorted((template / LICENSES).glob("*.txt"))
        },
        "questions": {name: question(name) for name in catalog.questions()},
        "outside": OUTSIDE,
    }


def question(name: str) -> dict[str, Any]:
    """Return what the page needs of a question, with its default and its check compiled."""
    row = catalog.load("questions")[name]
    return {
        "help": row["help"],
        "list": row.get("multiselect", False),
        "choices": row["choices"] if isinstance(row.get("choices"), dict) else None,
        "default": compile_template(str(row["default"]), f"questions.yml: {name}"),
        "validator": compile_template(row.get("validator", ""), f"questions.yml: {name}"),
    }


def documentation(source: str) -> str | None:
    """Return where the documentation of a template is read, or None if that is no web address."""
    place = address(source)
    return f"{place.removesuffix('.git')}/tree/HEAD/docs" if place.startswith("https://") else None


def data(template: Path, source: str) -> dict[str, Any]:
    """Return all that the page shows.

    Args:
        template: the repository.
        source: where users have it from: what they pass to copier.
    """
    described = subprocess.run(
        ["git", "describe", "--tags", "--always"], cwd=template, capture_output=True, text=True
    )
    return {
        "source": source,
        "docs": documentation(source),
        "commit": described.stdout.strip() or "HEAD",
        "catalog": catalog_data(template),
        "files": files(template),
    }


def packed(content: dict[str, Any]) -> str:
    """Return the data as page/data.js unpacks it; equal content gives equal text."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def page(content: dict[str, Any]) -> str:
    """Return the page with its style, its scripts and its data in it."""
    text = (PAGE / "index.html").read_text("utf-8")
    for library, scripts in LIBRARIES.items():
        folder = VENDOR / library
        # The page contains the libraries, so it has to contain their licences.
        licence, *codes = (
            (folder / name).read_text("utf-8").strip() for name in ("LICENSE", *scripts)
        )
        text = text.replace(f"/* {library} */", "\n".join([f"/*\n{licence}\n*/", *codes]))
    text = text.replace("/* style.css */", (PAGE / "style.css").read_text("utf-8"))
    for name in SCRIPTS:
        # Comments are not needed in the page.
        script = re.sub(r"^ *//.*\n", "", (PAGE / name).read_text("utf-8"), flags=re.MULTILINE)
        text = text.replace(f"/* {name} */", script)
    return text.replace("/* data */", packed(content))


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m maintenance.site.build", description=__doc__)
    parser.add_argument("--source", default=REPOSITORY, help="the template's address, for copier")
    parser.add_argument("--out", type=Path, default=TEMPLATE / "build" / "page" / "index.html")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(page(data(TEMPLATE, arguments.source)), encoding="utf-8")
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
