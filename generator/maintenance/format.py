"""Formats the code under template/ by the rules of a rendered project.

Formatters cannot read files with placeholders. `python -m maintenance.format` renders all files
with a name that occurs nowhere else, formats them, and restores the placeholders.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from torchsmith.render import Job, render
from torchsmith.template import TEMPLATE

NAME = "zqzqzq"
# The text of each placeholder, the longer placeholders first.
PLACEHOLDERS = {
    f"torch_{NAME}": "{= package =}",
    f"torch-{NAME}": "{= distribution =}",
    NAME: "{= backend_name =}",
    NAME.upper(): "{= env_prefix =}",
    NAME.capitalize(): "{= display_name =}",
}
SUFFIXES = (".cpp", ".h", ".py", ".pyi")


def with_placeholders(text: str) -> str:
    """Return rendered text with the placeholders that it came from."""
    for value, placeholder in PLACEHOLDERS.items():
        text = text.replace(value, placeholder)
    return text


def rendered_name(source: Path) -> str:
    """Return the path of a template file in the render."""
    name = str(source.relative_to(TEMPLATE / "template")).removesuffix(".jinja")
    for value, placeholder in PLACEHOLDERS.items():
        name = name.replace(placeholder, value)
    return name


def main() -> int:
    """Format in place and name the files that changed."""
    sources = [
        path
        for path in sorted((TEMPLATE / "template").rglob("*"))
        if path.name.removesuffix(".jinja").endswith(SUFFIXES)
    ]
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        render(project, Job({"backend_name": NAME, "preset": "full"}))
        # A file that cannot be restored contains other placeholders, and is not formatted.
        pairs = [
            (source, target)
            for source in sources
            if (target := project / rendered_name(source)).exists()
            and with_placeholders(target.read_text("utf-8")) == source.read_text("utf-8")
        ]
        bin = Path(sys.executable).parent
        cxx = [str(target) for _, target in pairs if target.suffix in (".cpp", ".h")]
        subprocess.run([bin / "clang-format", "-i", *cxx], cwd=project, check=True)
        subprocess.run([bin / "ruff", "format", "--quiet", "."], cwd=project, check=True)
        for source, target in pairs:
            text = with_placeholders(target.read_text("utf-8"))
            if text != source.read_text("utf-8"):
                source.write_text(text, "utf-8")
                print(source.relative_to(TEMPLATE))
        for source in sorted(set(sources) - {source for source, _ in pairs}):
            print(f"{source.relative_to(TEMPLATE)}: left alone", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
