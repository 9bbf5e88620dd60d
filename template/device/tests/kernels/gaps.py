"""What `unsupported` in support.toml should say of a run: few entries, general ones first."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

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
        if (tier == ALL or (tier == QUICK and entry.sizes == ANY))
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
        stays = (
            entry.note or not any(map(entry.about, seen)) or (entry.sizes != ANY and tier != ALL)
        )
        if not stays or entry in stale or any(map(entry.matches, working)):
            continue
        entries.append(entry)
        left = {case for case in left if not entry.matches(case)}
    for family in sorted({case.family for case in left}):
        missing = {case for case in left if case.family == family}
        working_ones = [case for case in working if case.family == family]
        for entry in sorted(_covering(family, missing, working_ones), key=_generality):
            entries.append(entry)
            left = {case for case in left if not entry.matches(case)}
    return _with_reasons(entries, declined), left


def _generality(entry: Entry) -> tuple[int, list[int]]:
    given = [at for at, globs in enumerate(entry.patterns) if globs != ANY]
    return len(given), given


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


@dataclass(frozen=True)
class _Candidate:
    """Values of some fields, or for the last field all but some, that only declined cases have."""

    fields: tuple[str, ...]
    heads: frozenset[tuple[str, ...]]  # values of all fields but the last
    values: frozenset[str]
    others: frozenset[str]  # the last field's values that working cases with these heads have

    def entries(self, family: str) -> Iterator[Entry]:
        """The entries that say this: one, but for several heads of more than one field."""
        *first, last = self.fields
        lists = _listed(self.values, self.others)
        if len(first) == 1:
            yield _entry(family, {first[0]: sorted(head[0] for head in self.heads), last: lists})
            return
        for head in sorted(self.heads):
            given = {name: [value] for name, value in zip(first, head, strict=True)}
            yield _entry(family, {**given, last: lists})


def _listed(values: Iterable[str], others: Collection[str]) -> list[str]:
    """Globs for these values and none of the others: by name, or all but the others if shorter."""
    named = sorted(values)
    return (
        named if len(named) <= len(others) + 1 else ["*", *(f"!{name}" for name in sorted(others))]
    )


def _entry(family: str, fields: Mapping[str, list[str]]) -> Entry:
    globs = {name: tuple(fields.get(name, ANY)) for name in PATTERNS}
    return Entry(**{**globs, "family": (family,)}, reason="")


def _covering(family: str, missing: Collection[Case], working: Collection[Case]) -> Iterator[Entry]:
    """Entries about these cases of a family and no working one, general ones first."""
    rest = set(missing)
    if not working:
        yield _entry(family, {})
        return
    for count in range(1, len(PATTERNS)):
        while rest:
            best = max(
                (
                    found
                    for fields in itertools.combinations(PATTERNS[1:], count)
                    for found in _candidates(fields, rest, working)
                ),
                key=lambda found: len(found[1]),
                default=None,
            )
            if best is None:
                break
            rest -= best[1]
            yield from best[0].entries(family)


def _candidates(
    fields: tuple[str, ...], missing: Iterable[Case], working: Iterable[Case]
) -> Iterator[tuple[_Candidate, set[Case]]]:
    """What these fields can tell of the missing cases, and of which."""
    *first, last = fields
    found: dict[tuple[str, ...], dict[str, set[Case]]] = defaultdict(lambda: defaultdict(set))
    taken: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for case in working:
        taken[tuple(getattr(case, name) for name in first)].add(getattr(case, last))
    for case in missing:
        head, value = tuple(getattr(case, name) for name in first), getattr(case, last)
        if value not in taken[head]:
            found[head][value].add(case)
    # Heads of which the same is true are one candidate.
    groups: dict[tuple[frozenset[str], frozenset[str]], list[tuple[str, ...]]] = defaultdict(list)
    for head, values in found.items():
        groups[frozenset(values), frozenset(taken[head])].append(head)
    for (values, others), heads in groups.items():
        cases = {case for head in heads for some in found[head].values() for case in some}
        yield _Candidate(fields, frozenset(heads), values, others), cases


def rewritten(text: str, entries: Iterable[Entry]) -> str:
    """The text of a support.toml with these `unsupported` entries, at its end, instead of its own.

    An entry ends at an empty line. Everything else stays.
    """
    kept = re.sub(r"^\[\[unsupported\]\]\n([^\s\[].*\n)*\n*", "", text, flags=re.MULTILINE)
    return "\n\n".join([*filter(None, [kept.rstrip("\n")]), *map(_paragraph, entries)]) + "\n"


def _paragraph(entry: Entry) -> str:
    patterns = zip(PATTERNS, entry.patterns, strict=True)
    keys = [f"{name} = {_quoted(globs)}" for name, globs in patterns if globs != ANY]
    keys.append(f"reason = {_quoted(entry.reason)}")
    if entry.note:
        keys.append(f"note = {_quoted(entry.note)}")
    return "\n".join(["[[unsupported]]", *keys])


def _quoted(value: str | Globs) -> str:
    """A string, or several, as TOML writes them, which is as JSON does."""
    one = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    return json.dumps(one, ensure_ascii=False)
