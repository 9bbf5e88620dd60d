"""What `unsupported` in support.toml should say of a run: few entries, general ones first."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kernels.rules import find_rules
from kernels.support import PATTERNS, Case, Entry, Globs, Outcome, Support

# The values of -m that take every case of a file: without the slow ones, only those, all of them.
QUICK, FULL, ALL = "", "full", "full or not full"
ANY: Globs = ("*",)


def unmet(support: Support, cases: Collection[Case], tier: str) -> list[Entry]:
    """The entries about the families of these cases that no case matches, as far as one can tell.

    What is said of sizes may be about the slow cases, everything else is about quick ones too.
    """
    families = {case.family for case in cases}
    return [
        entry
        for entry in (*support.unsupported, *support.expected_failures, *support.ulp)
        if (tier == ALL or (tier == QUICK and not entry.about_sizes))
        and any(map(entry.about, families))
        and not any(entry.matches(case) for case in cases)
    ]


def gaps(
    support: Support, outcomes: Collection[Outcome], tier: str
) -> tuple[list[Entry], set[Case]]:
    """What `unsupported` should say: as few entries as do, with the device's reasons.

    Entries with a note of yours stay while they are right, and so do those about other families
    or about sizes that this run may have left out. Also gives the cases that no entry can be
    about, because the device declines only some of them.
    """
    declined = {outcome.case: outcome.answer or "" for outcome in outcomes if outcome.answer}
    working = [outcome.case for outcome in outcomes if not outcome.answer]
    seen = {case.family for case in (*declined, *working)}
    stale = unmet(support, [*declined, *working], tier)
    entries, left = [], set(declined)
    for entry in support.unsupported:
        stays = entry.note or not any(map(entry.about, seen)) or (entry.about_sizes and tier != ALL)
        if not stays or entry in stale or any(map(entry.matches, working)):
            continue
        entries.append(entry)
        left = {case for case in left if not entry.matches(case)}
    for family in sorted({case.family for case in left}):
        missing = [case for case in declined if case.family == family]
        wanted = {case for case in missing if case in left}
        working_ones = [case for case in working if case.family == family]
        found = [_entry(family, rule) for rule in find_rules(missing, wanted, working_ones)]
        for entry in sorted(found, key=_generality):
            entries.append(entry)
            left = {case for case in left if not entry.matches(case)}
    return _with_reasons(entries, declined), left


def _generality(entry: Entry) -> tuple[int, list[int]]:
    given = [at for at, globs in enumerate(entry.patterns) if globs != ANY]
    return len(given) + len(entry.parameters), given


def _with_reasons(entries: list[Entry], answers: Mapping[Case, str]) -> list[Entry]:
    """The entries with what the device answers where no other of them says so, or anywhere."""
    families = {case.family for case in answers}
    of: dict[int, set[str]] = defaultdict(set)
    alone: dict[int, set[str]] = defaultdict(set)
    for family in families:
        about = [at for at, entry in enumerate(entries) if entry.about(family)]
        for case in answers:
            if case.family != family:
                continue
            matching = [at for at in about if entries[at].matches(case)]
            for at in matching:
                of[at].add(answers[case])
            if len(matching) == 1:
                alone[matching[0]].add(answers[case])
    return [
        replace(entry, reason="; ".join(sorted(alone[at] or of[at])) or entry.reason)
        for at, entry in enumerate(entries)
    ]


def _entry(family: str, rule: Mapping[str, Globs]) -> Entry:
    globs = {name: rule.get(name, ANY) for name in PATTERNS}
    named = tuple((name, rule[name]) for name in sorted(rule) if name not in PATTERNS)
    return Entry(**{**globs, "family": (family,)}, reason="", parameters=named)


def rewritten(text: str, entries: Iterable[Entry]) -> str:
    """The text of a support.toml with these `unsupported` entries, at its end, instead of its own.

    An entry ends at an empty line. Everything else stays.
    """
    kept = re.sub(r"^\[\[unsupported\]\]\n([^\s\[].*\n)*\n*", "", text, flags=re.MULTILINE)
    return "\n\n".join([*filter(None, [kept.rstrip("\n")]), *map(_paragraph, entries)]) + "\n"


def _paragraph(entry: Entry) -> str:
    patterns = zip(PATTERNS, entry.patterns, strict=True)
    keys = [f"{name} = {_quoted(globs)}" for name, globs in patterns if globs != ANY]
    if entry.parameters:
        named = ", ".join(f"{name} = {_quoted(globs)}" for name, globs in entry.parameters)
        keys.append(f"parameters = {{ {named} }}")
    keys.append(f"reason = {_quoted(entry.reason)}")
    if entry.note:
        keys.append(f"note = {_quoted(entry.note)}")
    return "\n".join(["[[unsupported]]", *keys])


def _quoted(value: str | Globs) -> str:
    """A string, or several, as TOML writes them, which is as JSON does."""
    one = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    return json.dumps(one, ensure_ascii=False)
