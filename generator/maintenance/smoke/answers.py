"""The axes of a smoke run with their values, and which combinations are legal."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchsmith import catalog
from torchsmith.errors import InputError, require_choice

# Legal answers that break code without quoting, or that relies on the length of a name.
HOSTILE: dict[str, Any] = {
    "backend_name": "zq_a_rather_long_but_legal_device_name",
    "display_name": 'Ünïcode "Quoted" {Braces} & Co',
    "vendor": "O'Neill \\ Söhne <x> #1: {{ no }} %(s)s",
    "description": "A \"device\" with \\n, {braces}, [brackets], # `ticks`, $HOME: 漢 😀 'quotes'",
}
PLAIN = {"backend_name": "foo"}

Row = dict[str, Any]
"""A value for each axis."""


@dataclass(frozen=True)
class Space:
    """The axes with their values, the ordinary one first; a feature is an axis of its own."""

    axes: dict[str, tuple[Any, ...]]
    identities: dict[str, dict[str, Any]]

    def legal(self, part: Mapping[str, Any]) -> bool:
        """Whether values for some of the axes can be completed to a legal row.

        The only rules are presets and features that require others, so the missing values can
        always be chosen one by one.
        """
        features = catalog.features()
        on = {id for id in features if part.get(id) is True}
        off = {id for id in features if part.get(id) is False}
        preset = part.get("preset")
        if preset in catalog.presets():
            whole = catalog.presets()[preset]
            return on <= whole and not off & whole
        # A feature with one value has it, whether chosen yet or not.
        on |= {id for id in features if self.axes[id] == (True,)}
        off |= {id for id in features if self.axes[id] == (False,)}
        return not catalog.closure(frozenset(on)) & off

    def answers(self, row: Row) -> dict[str, Any]:
        """Return a row as answers to the template's questions."""
        answers = dict(self.identities[row["identity"]])
        for question in ("license", "ci_provider", "preset"):
            answers[question] = row[question]
        if row["preset"] == "custom":
            answers["features"] = sorted(features_of(row))
        if row["device"]:
            answers["device"] = row["device"]
        if row["dtypes"]:
            answers["dtypes"] = list(row["dtypes"])
        return answers

    def label(self, row: Row) -> str:
        """Return a row in a few words."""
        chosen = (
            row["preset"]
            if row["preset"] != "custom"
            else "+".join(sorted(features_of(row))) or "core"
        )
        count = len(row["dtypes"]) or "default"
        return f"{row['identity']} {chosen} {row['license']} {row['ci_provider']} dtypes:{count}"

    def command(self, row: Row) -> str:
        """Return the command that tries this row again, alone."""
        words = ["torchsmith", "smoke"]
        for question, value in self.answers(row).items():
            text = "[" + ", ".join(value) + "]" if isinstance(value, list) else value
            words += ["-d", f"{question}={text}"]
        if not row["dtypes"]:
            words += ["-d", "dtypes=default"]
        return shlex.join(words)


def features_of(row: Row) -> frozenset[str]:
    """Return the features that a row has."""
    if row["preset"] != "custom":
        return catalog.presets()[row["preset"]]
    return frozenset(id for id in catalog.features() if row[id])


def space(pinned: Mapping[str, Any]) -> Space:
    """Return the axes, where answers that were given leave one value."""
    questions = catalog.load("questions")
    for name in pinned:
        require_choice("question", name, catalog.questions())
    axes: dict[str, tuple[Any, ...]] = dict.fromkeys(catalog.features(), (True, False))
    axes["preset"] = _choice(pinned, "preset", ("custom", *catalog.presets()))
    axes["dtypes"] = _dtypes(pinned)
    for name in ("license", "ci_provider"):
        axes[name] = _choice(pinned, name, tuple(questions[name]["choices"].values()))
    # This machine may lack the SDK of another device, so one is only tried on request.
    devices = tuple(questions["device"]["choices"].values())
    axes["device"] = _choice(pinned, "device", devices) if "device" in pinned else ("",)
    if "features" in pinned:
        chosen = _list("features", pinned["features"], catalog.features())
        if pinned.get("preset", "custom") != "custom":
            preset = pinned["preset"]
            raise InputError(f"features is read with preset=custom only: leave preset={preset} out")
        whole = catalog.closure(chosen)
        axes.update({id: (id in whole,) for id in catalog.features()}, preset=("custom",))
    texts = {name: pinned[name] for name in HOSTILE if name in pinned}
    identities = {"plain": {**PLAIN, **texts}}
    if not texts:
        identities["hostile"] = HOSTILE
    axes["identity"] = tuple(identities)
    if axes["preset"] != ("custom",) and len(axes["preset"]) == 1:
        whole = catalog.presets()[axes["preset"][0]]
        axes.update({id: (id in whole,) for id in catalog.features()})
    return Space(axes, identities)


def _dtypes(pinned: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """The sets of element types; the empty one stands for the default."""
    known = catalog.dtypes()
    required = tuple(name for name, row in known.items() if row.get("required"))
    if "dtypes" not in pinned:
        return ((), required, tuple(known))
    if pinned["dtypes"] == ["default"]:
        return ((),)
    chosen = _list("dtypes", pinned["dtypes"], known)
    return (tuple(name for name in known if name in chosen),)


def _choice(pinned: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    if name not in pinned:
        return choices
    require_choice(name, pinned[name], choices, f"choose from {', '.join(choices)}")
    return (pinned[name],)


def _list(name: str, items: Sequence[str], choices: Mapping[str, Any]) -> frozenset[str]:
    for item in items:
        require_choice(name.removesuffix("s"), item, choices)
    return frozenset(items)
