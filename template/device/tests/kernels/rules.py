"""Rules about cases: the fewest and shortest that tell what a device declines from what it does.

A rule says of some fields what their values are like, as an entry of support.toml does: `op` is one of these, `rank` is
greater than 4, `order` is anything but 2. Sets of cases are whole numbers, bit i of which stands for case i.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernels import parameters
from kernels.support import PATTERNS, Case, Globs

Rule = dict[str, Globs]

# As many fields as a rule has, unless no rule of so few will do.
_MOST_FIELDS = 3
# Of how many cases the rules that hold for them are compared before the best is taken.
_SEEDS = 8
# What a value costs. Sizes fit next to nothing but the very cases that they came from, and too many elements are likelier
# than just so many, or too few.
_COST = {"sizes": 20}
_COST_OF_SIZE = 5
# A limit of a parameter is often a coincidence: a word, such as that an array is given, is likelier the reason.
_COST_OF_LIMIT = 3


@dataclass(frozen=True)
class _Condition:
    """What a rule says of one field, and the cases of which it is true."""

    globs: Globs
    cases: int


@dataclass(frozen=True)
class _Found:
    """A rule that no working case fits."""

    conditions: Mapping[str, _Condition]
    covers: int  # the cases that want a rule and that this one is about

    @property
    def worth(self) -> float:
        """How much it says for its length."""
        cost = sum(
            1 + sum(_cost(name, glob) for glob in condition.globs)
            for name, condition in self.conditions.items()
        )
        return self.covers.bit_count() / cost


def find_rules(
    declined: Sequence[Case], wanted: Collection[Case], working: Sequence[Case]
) -> list[Rule]:
    """Rules of which one is about each of the wanted cases, which are declined, and none about a working one.

    Cases are left out that cannot be told from working ones.
    """
    if not working:
        return [{}]
    table = _Table([*declined, *working], len(declined))
    left = sum(1 << at for at, case in enumerate(declined) if case in wanted)
    found = []
    while left:
        best = table.best(left)
        if best is None:
            break
        left &= ~best.covers
        found.append(best)
    return [
        {name: condition.globs for name, condition in one.conditions.items()}
        for one in _needed(found)
    ]


def _needed(found: list[_Found]) -> list[_Found]:
    """Those without which some case would have no rule: early ones may be covered by the later."""
    kept = list(found)
    for one in found:
        others = 0
        for other in kept:
            others |= 0 if other is one else other.covers
        if one.covers & ~others == 0:
            kept.remove(one)
    return kept


class _Table:
    """The cases by what their fields are."""

    def __init__(self, cases: Sequence[Case], declined: int) -> None:
        self.declined = (1 << declined) - 1
        self.working = ((1 << len(cases)) - 1) & ~self.declined
        self.cases = [_fields(case) for case in cases]
        values: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for at, fields in enumerate(self.cases):
            for name, value in fields.items():
                values[name][value] |= 1 << at
        # A field that is the same everywhere tells nothing, but one that only some cases have does.
        everything = self.declined | self.working
        self.values = {
            name: dict(of) for name, of in values.items() if everything not in of.values()
        }

    def best(self, left: int) -> _Found | None:
        """The rule that says most about these cases for its length, or None if none is possible."""
        rules = [rule for seed in _some(left) for rule in self._rules(seed, left)]
        if not rules:
            rules = [rule for seed in _bits(left) for rule in self._rules(seed, left)]
        return max(rules, key=lambda rule: rule.worth, default=None)

    def _rules(self, seed: int, left: int) -> Iterator[_Found]:
        """Rules about this case, and about as many others as they can be."""
        for names in self._telling(seed):
            for order in itertools.permutations(names):
                yield self._widened(seed, order, left)

    def _telling(self, seed: int) -> Iterator[tuple[str, ...]]:
        """The fields by whose values this case differs from all working ones: no more than it takes."""
        case = self.cases[seed]
        of = {name: self.values[name][case[name]] for name in self.values if name in case}
        enough: list[frozenset[str]] = []
        for count in range(1, _MOST_FIELDS + 1):
            for names in itertools.combinations(of, count):
                shared = self.working
                for name in names:
                    shared &= of[name]
                if shared or any(set(names) >= fewer for fewer in enough):
                    continue
                enough.append(frozenset(names))
                yield names
        if not enough:
            yield from self._many(of)

    def _many(self, of: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
        """The same where it takes many fields: what can be done without goes, sizes at first."""
        names = [name for name in of if name != "sizes"] + ["sizes"] * ("sizes" in of)
        for name in reversed(list(names)):
            shared = self.working
            for other in names:
                shared &= of[other] if other != name else -1
            if not shared:
                names.remove(name)
        shared = self.working
        for name in names:
            shared &= of[name]
        if not shared:
            yield tuple(names[:6])

    def _widened(self, seed: int, names: Sequence[str], left: int) -> _Found:
        """The rule with these fields, each in its turn as wide as the working cases let it be."""
        case = self.cases[seed]
        conditions = {
            name: _Condition((case[name],), self.values[name][case[name]]) for name in names
        }
        for name in names:
            others = self.declined | self.working
            for other, condition in conditions.items():
                others &= condition.cases if other != name else -1
            conditions[name] = self._condition(name, case[name], others, left)
        covers = left
        for condition in conditions.values():
            covers &= condition.cases
        return _Found({name: conditions[name] for name in self.values if name in names}, covers)

    def _condition(self, name: str, value: str, others: int, left: int) -> _Condition:
        """What the field may be, among these cases, for none of them to work."""
        values = self.values[name]
        working = sorted(one for one, cases in values.items() if cases & others & self.working)
        named = sorted(
            one for one, cases in values.items() if cases & others & left and one not in working
        )
        those = 0
        for one in named:
            those |= values[one]
        listed = _Condition(tuple(named), those)
        if len(working) + 1 < len(named):
            anything = 0
            for one, cases in values.items():
                anything |= cases if one not in working else 0
            listed = _Condition(("*", *(f"!{one}" for one in working)), anything)
        limit = self._limit(name, value, named, working)
        if limit is None:
            return listed
        shorter = len(listed.globs) > 1 or name in parameters.MEASURES
        as_much = limit.cases & others & left == listed.cases & others & left
        return limit if shorter and as_much else listed

    def _limit(
        self, name: str, value: str, named: Sequence[str], working: Sequence[str]
    ) -> _Condition | None:
        """That the field is as far as it was seen to be declined, on this value's side of working ones."""
        given, bounds, declined = parameters.number(value), _numbers(working), _numbers(named)
        # Where words are among the numbers, such as "inf", there is no order of all of them.
        if name in PATTERNS or given is None or not bounds or not declined:
            return None
        if given > max(bounds):
            end = min(one for one in declined if one > max(bounds))
            glob = f">={parameters.word(end)}"
        elif given < min(bounds):
            end = max(one for one in declined if one < min(bounds))
            glob = f"<={parameters.word(end)}"
        else:
            return None
        cases = 0
        for one, of in self.values[name].items():
            cases |= of if parameters.matches(one, glob) else 0
        return _Condition((glob,), cases)


def _numbers(values: Sequence[str]) -> list[float]:
    """The values as numbers, or none if one of them is no number."""
    numbers = [parameters.number(value) for value in values]
    return [] if None in numbers else [one for one in numbers if one is not None]


def _cost(name: str, glob: str) -> int:
    if name in parameters.MEASURES and glob[0] != ">":
        return _COST_OF_SIZE
    if name not in parameters.MEASURES and glob[0] in "<>":
        return _COST_OF_LIMIT
    return _COST.get(name, 1)


def _fields(case: Case) -> dict[str, str]:
    own = dict(zip(PATTERNS[1:], case.patterned[1:], strict=True))
    return {**own, **case.by_name}


def _bits(cases: int) -> Iterator[int]:
    while cases:
        low = cases & -cases
        yield low.bit_length() - 1
        cases ^= low


def _some(cases: int) -> list[int]:
    """A few of the cases, from all over."""
    every = list(_bits(cases))
    return every[:: max(1, len(every) // _SEEDS)]
