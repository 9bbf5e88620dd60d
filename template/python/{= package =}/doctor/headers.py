"""Reads the virtual functions of a class from a C++ header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

_IGNORED = re.compile(
    r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|\[\[.*?\]\]', re.S | re.M
)
_BRACKETS = {"(": 1, "{": 1, "<": 1, ")": -1, "}": -1, ">": -1}


def virtuals(text: str, class_name: str) -> dict[str, str] | None:
    """Return the signature of each function that a class declares ``virtual``, by name.

    Overloads have their types in the name, as ``f(int)`` and ``f(float)``. A signature has no
    argument names and no defaults. Returns None if the header does not have the class.
    """
    return _found(text, class_name, r"virtual\b(?!.*\boverride\b)(.*)")


def overrides(text: str, class_name: str) -> dict[str, str] | None:
    """Return the functions that a class marks ``override``, like :func:`virtuals`."""
    return _found(text, class_name, r"(?:virtual\b)?(.*)\boverride\b")


def _found(text: str, class_name: str, pattern: str) -> dict[str, str] | None:
    text = _IGNORED.sub("", text)
    head = rf"\b(?:class|struct)\s+(?:\w+\s+)?{class_name}\b[^;{{}}()]*\{{"
    match = re.search(head, text)
    if match is None:
        return None
    functions = []
    for statement in _statements(text[match.end() :]):
        flat = re.sub(r"^(?:(?:public|protected|private) ?: ?)*", "", " ".join(statement.split()))
        if (declared := re.match(pattern, flat)) and "~" not in flat:
            functions.append(_signature(declared[1].strip()))
    named = Counter(name for name, _, _ in functions)
    return {
        name if named[name] == 1 else f"{name}({types})": whole for name, types, whole in functions
    }


def _statements(text: str) -> Iterator[str]:
    """Yield each declaration of a class without its body, from the text after the opening brace."""
    depth = start = 0
    for at, sign in enumerate(text):
        if sign == "{":
            if depth == 0:
                yield text[start:at]
            depth += 1
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
        elif sign == "}":
            if depth == 0:
                return
            depth -= 1
            start = at + 1 if depth == 0 else start
        elif sign == ";" and depth == 0:
            yield text[start:at]
            start = at + 1


def _signature(declaration: str) -> tuple[str, str, str]:
    """Return the name, the types of the arguments, and the whole signature."""
    head, _, rest = declaration.partition("(")
    end, arguments = _arguments(rest)
    types = ", ".join(_type(argument) for argument in arguments)
    qualifiers = re.findall(r"\b(?:const|noexcept)\b", rest[end:])
    name = head.split()[-1].lstrip("*&")
    return name, types, " ".join([f"{head.strip()}({types})", *qualifiers])


def _arguments(text: str) -> tuple[int, list[str]]:
    """Return the position of the closing bracket, and the arguments split at commas."""
    depth = start = 0
    found = []
    for at, sign in enumerate(text):
        if (sign == ")" and depth == 0) or (sign == "," and depth == 0):
            found.append(text[start:at].strip())
            start = at + 1
            if sign == ")":
                return at, [argument for argument in found if argument]
        depth += _BRACKETS.get(sign, 0)
    raise ValueError(f"no bracket closes the arguments in {text!r}")


def _type(argument: str) -> str:
    """Return an argument without its default and its name."""
    argument = argument.partition("=")[0].strip()
    name = re.fullmatch(r"(.*[\w>&*])(?:(?<=[>&*])|\s)\s*[A-Za-z_]\w*", argument)
    if name is None or name[1].strip() in ("const", "unsigned", "struct"):
        return argument
    return name[1].strip()
