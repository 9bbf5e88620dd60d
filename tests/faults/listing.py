"""The list of faults, with their places and the tests that run first."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMES = {"{= package =}": "torch_foo", "{= backend_name =}": "foo"}


@dataclass(frozen=True)
class Fault:
    """A text of one file, and its replacement."""

    name: str
    kind: str
    file: str
    old: str
    new: str
    likely: tuple[str, ...] = ()

    @property
    def is_rendered(self) -> bool:
        """Whether the rendered project's own tests must catch it."""
        return self.file.startswith("template/")

    @property
    def path(self) -> str:
        """The file in the folder that it is planted in: the rendered project or the checkout."""
        if not self.is_rendered:
            return self.file
        path = self.file.removeprefix("template/").removesuffix(".jinja")
        for placeholder, name in NAMES.items():
            path = path.replace(placeholder, name)
        return path

    def planted(self, text: str) -> str:
        """Return the file's text with the fault in it."""
        if (count := text.count(self.old)) != 1:
            raise LookupError(f"{self.file} has the text of '{self.name}' {count} times")
        return text.replace(self.old, self.new)


def read() -> list[Fault]:
    """Return all faults."""
    return [
        Fault(**{**row, "likely": tuple(row["likely"])})
        for list in ("template.toml", "generator.toml")
        for row in tomllib.loads((HERE / list).read_text("utf-8"))["fault"]
    ]
