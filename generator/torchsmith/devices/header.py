"""The functions that a project's own runtime.h declares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from torchsmith.errors import InputError

# The heading of a group, or a declaration; indented lines belong to structs.
DECLARATION = re.compile(
    r"^// --- (?P<group>\w+).* ---$"
    r"|^(?P<result>[A-Za-z_][\w:<>, ]*[ *]+)(?P<name>\w+)"
    r"\((?P<parameters>[^;{}]*)\)(?P<noexcept> noexcept)?;",
    re.MULTILINE,
)
PARAMETER = re.compile(r"[^,()]+(?:\([^()]*\)\([^()]*\))?")
NAME = re.compile(r"\b(?P<name>\w+)(?P<rest>\)\([^()]*\))?$")


@dataclass(frozen=True)
class Function:
    """A function of the header.

    Attributes:
        group: The first word of the group that it stands in.
        result: Its result's type, with the blank that follows, if one does.
        name: Its name.
        parameters: Its parameters, each by its type and its name.
        may_throw: Whether it may.
    """

    group: str
    result: str
    name: str
    parameters: tuple[str, ...]
    may_throw: bool

    @property
    def unused(self) -> str:
        """The list of parameters, with their names in comments, as the body does not use them."""
        return ", ".join(
            NAME.sub(r"/*\g<name>*/\g<rest>", parameter).replace("(*/", "(* /")
            for parameter in self.parameters
        )


def read(header: Path) -> list[Function]:
    """Return the functions of a header, in the same order.

    Raises:
        InputError: There is no such header, or no function in it.
    """
    if not header.is_file():
        raise InputError(f"'{header}' is missing: restore it with git")
    functions, group = [], ""
    for found in DECLARATION.finditer(header.read_text("utf-8")):
        if found["group"]:
            group = found["group"]
        else:
            functions.append(_function(group, found))
    if not functions:
        raise InputError(f"'{header}' declares no functions: restore it with git")
    return functions


def _function(group: str, found: re.Match[str]) -> Function:
    return Function(
        group=group,
        result=found["result"],
        name=found["name"],
        parameters=tuple(each.strip() for each in PARAMETER.findall(found["parameters"])),
        may_throw=not found["noexcept"],
    )
