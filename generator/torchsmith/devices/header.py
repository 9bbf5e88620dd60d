"""The functions that a project's own runtime.h declares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from torchsmith.errors import InputError

# A heading of a group, or a declaration; what is indented is a struct's.
_LINE = re.compile(
    r"^// --- (?P<group>\w+).* ---$"
    r"|^(?P<result>[A-Za-z_][\w:<>, ]*[ *]+)(?P<name>\w+)"
    r"\((?P<parameters>[^;{}]*)\)(?P<noexcept> noexcept)?;",
    re.MULTILINE,
)
_PARAMETER = re.compile(r"[^,()]+(?:\([^()]*\)\([^()]*\))?")
_PARAMETER_NAME = re.compile(r"\b(?P<name>\w+)(?P<rest>\)\([^()]*\))?$")


@dataclass(frozen=True)
class Declaration:
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
    def signature(self) -> str:
        """What stands before the body."""
        suffix = "" if self.may_throw else " noexcept"
        return f"{self.result}{self.name}({', '.join(self.parameters)}){suffix}"

    @property
    def unused(self) -> str:
        """The list of parameters, with their names in comments, as the body does not use them."""
        return ", ".join(
            _PARAMETER_NAME.sub(r"/*\g<name>*/\g<rest>", parameter).replace("(*/", "(* /")
            for parameter in self.parameters
        )


def read(header: Path) -> list[Declaration]:
    """Return the functions of a header, in its order.

    Raises:
        InputError: There is no such header, or no function in it.
    """
    if not header.is_file():
        raise InputError(f"'{header}' is missing: restore it with git")
    functions, group = [], ""
    for found in _LINE.finditer(header.read_text("utf-8")):
        if found["group"]:
            group = found["group"]
        else:
            functions.append(_declaration(group, found))
    if not functions:
        raise InputError(f"'{header}' declares no functions: restore it with git")
    return functions


def _declaration(group: str, found: re.Match[str]) -> Declaration:
    return Declaration(
        group=group,
        result=found["result"],
        name=found["name"],
        parameters=tuple(each.strip() for each in _PARAMETER.findall(found["parameters"])),
        may_throw=not found["noexcept"],
    )
