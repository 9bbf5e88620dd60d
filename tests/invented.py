"""A template of a few lines with six releases, between which all happens that can happen.

Lines change, files come, go, move and come back; a question is added, renamed and retired; a
feature is added and retired. Each file has an identity, which its moves leave alone: what the tests
expect of a move does not come from the template's own list.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock

from rendering import commit, git
from torchsmith import render
from torchsmith.render import Job

TAGS = tuple(f"v{number}.0.0" for number in range(1, 7))


def lines(word: str, **changed: str) -> str:
    """Nine lines, some of them the same, of which some are changed: two="another"."""
    text = {"one": f"{word} begins", "two": "{", "three": f"  {word} 3", "four": "}", "five": "",
            "six": "{", "seven": f"  {word} 7", "eight": "}", "nine": f"{word} ends"}  # fmt: skip
    return "".join(f"{line}\n" for line in {**text, **changed}.values())


@dataclass(frozen=True)
class Release:
    """What the template has in one of its versions.

    Attributes:
        files: Path and text by identity.
        features: The identities that belong to a feature.
        requires: Features that need another.
        questions: Defaults by question.
    """

    files: dict[str, tuple[str, str | bytes]]
    features: dict[str, tuple[str, ...]]
    requires: dict[str, str] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)


AMP, RNG = ("amp-one", "amp-two"), ("rng-seed",)
FIRST: dict[str, tuple[str, str | bytes]] = {
    "readme": ("readme.txt", lines("readme")),
    "a": ("src/a.txt", lines("a")),
    "b": ("src/b.txt", lines("b")),
    "guide": ("doc/guide.txt", lines("guide")),
    "about": ("about.txt", "made by {{ owner }}\n" + lines("about")),
    "logo": ("logo.bin", b"\0logo 1\n"),
    "amp-one": ("amp/one.txt", lines("amp one")),
    "amp-two": ("amp/two.txt", lines("amp two")),
    "rng-seed": ("rng/seed.txt", lines("seed")),
}
SECOND = {
    **FIRST,
    "readme": ("readme.txt", lines("readme", two="{ //")),
    "c": ("src/c.txt", lines("c")),
    "about": ("about.txt", "made by {{ owner }}\n" + lines("about", nine="in {{ style }}")),
}
THIRD = {
    **SECOND,
    "b": ("lib/b.txt", lines("b", five="b 5")),
    "about": ("about.txt", "made by {{ vendor }}\n" + lines("about", nine="in {{ style }}")),
    "keep": ("storage/keep.txt", lines("keep")),
}
del THIRD["guide"]
FOURTH = {
    **THIRD,
    "readme": ("readme.txt", lines("readme", two="{ //", eight="} //")),
    "a": ("src/a.txt", lines("a", seven="  a seven")),
    "amp-two": ("amp/deep/two.txt", lines("amp two")),
    "guide": ("doc/guide.txt", lines("guide", one="guide again")),
    "logo": ("logo.bin", b"\0logo 4\n"),
}
FIFTH = {
    **FOURTH,
    "b": ("lib/core/b.txt", lines("b", five="b 5", one="b starts")),
    "about": ("about.txt", "made by {{ vendor }}\n" + lines("about")),
}
del FIFTH["c"], FIFTH["rng-seed"]
SIXTH = {
    **FIFTH,
    "readme": ("readme.txt", "{\n  new\n}\n" + lines("readme", eight="} //") + lines("more")),
    "new": ("doc/new.txt", lines("new")),
    "keep": ("storage/deep/keep.txt", lines("keep", three="  keep three")),
}
OWNER, VENDOR = "nobody", "{{ owner if owner is defined else 'nobody' }}"
STYLE = {"style": "plain"}
LATER = {"amp": AMP, "rng": RNG, "storage": ("keep",)}
RETIRED = {"amp": AMP, "storage": ("keep",)}
NEEDS = {"storage": "amp"}
RELEASES = dict(zip(TAGS, (
    Release(FIRST, {"amp": AMP, "rng": RNG}, {}, {"owner": OWNER}),
    Release(SECOND, {"amp": AMP, "rng": RNG}, {}, {"owner": OWNER, **STYLE}),
    Release(THIRD, LATER, NEEDS, {"vendor": VENDOR, **STYLE}),
    Release(FOURTH, LATER, NEEDS, {"vendor": VENDOR, **STYLE}),
    Release(FIFTH, RETIRED, NEEDS, {"vendor": VENDOR}),
    Release(SIXTH, RETIRED, NEEDS, {"vendor": VENDOR}),
), strict=True))  # fmt: skip

CONFIGURATION = """\
_subdirectory: template
_answers_file: .copier-answers.yml
_exclude:
  - |
    {%- for feature, paths in owned.items() if feature not in enabled %}
    {%- for path in paths %}
    /{{ path }}
    {%- endfor %}
    {%- endfor %}
"""
ENABLED = """\
{%- set ns = namespace(on={'full': owned | list, 'minimal': [], 'custom': features}[preset]) %}
{%- for user, used in requires.items() if user in ns.on %}
{%- set ns.on = ns.on + [used] %}
{%- endfor %}
{{ owned | list | select('in', ns.on) | list | to_json }}
"""
CHOICES = """\
{%- for id in owned %}
- {{ id }}
{%- endfor %}
{%- for id in retired if id in features | default([]) %}
- {{ id }}
{%- endfor %}
"""
MANIFEST = """\
ignore: []
moved:
{%- for row in moved if row.part in enabled + ['core'] %}
  {{ row.from }}: {{ row.to }}
{%- else %} {}
{%- endfor %}
parts:
{%- for id in enabled %}
  {{ id }}: {requires: {{ [requires[id]] if id in requires else [] }}, paths: {{ owned[id] }}}
{%- endfor %}
  core: {requires: [], paths: []}
"""


def takes(tag: str) -> set[str]:
    """Return the features that a release takes in answers: its own and the retired ones."""
    return {id for each in TAGS if each <= tag for id in RELEASES[each].features}


def make(template: Path) -> None:
    """Write the template, with a commit and a tag for each release."""
    template.mkdir()
    past: list[Release] = []
    for tag, release in RELEASES.items():
        _write(template, release, past)
        commit(template, tag, tag=tag)
        past.append(release)


def _write(template: Path, release: Release, past: list[Release]) -> None:
    tree = template / "template"
    if tree.exists():
        git(template, "rm", "-r", "--quiet", "template")
    for path, text in release.files.values():
        file = tree / (f"{path}.jinja" if "{{" in str(text) else path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    (tree / ".copier-answers.yml.jinja").write_text("{{ _copier_answers | to_nice_yaml }}")
    (tree / ".torchsmith.yml.jinja").write_text(MANIFEST)
    owned = {id: [release.files[each][0] for each in ids] for id, ids in release.features.items()}
    retired = {id for each in past for id in each.features} - set(release.features)
    part = {each: id for id, ids in release.features.items() for each in ids}
    moved = {
        (path, release.files[each][0], part.get(each, "core"))
        for older in past
        for each, (path, _) in older.files.items()
        if each in release.files and release.files[each][0] != path
    }
    computed = {
        "owned": owned,
        "requires": release.requires,
        "retired": sorted(retired),
        "moved": [dict(zip(("from", "to", "part"), row, strict=True)) for row in sorted(moved)],
    }
    questions: dict[str, Any] = {
        **{name: {"type": "yaml", "when": False, "default": json.dumps(value)}
           for name, value in computed.items()},
        "backend_name": {"type": "str", "default": "foo"},
        **{name: {"type": "str", "default": value} for name, value in release.questions.items()},
        "preset": {"type": "str", "default": "full", "choices": ["full", "minimal", "custom"]},
        "features": {"type": "str", "multiselect": True, "default": [], "choices": CHOICES,
                     "when": "{{ preset == 'custom' }}"},
        "enabled": {"type": "yaml", "when": False, "default": ENABLED},
    }  # fmt: skip
    rows = "".join(f"{name}: {json.dumps(row)}\n" for name, row in questions.items())
    (template / "copier.yml").write_text(CONFIGURATION + rows)


class Renders:
    """Renders of the template's releases; equal ones are rendered once for all processes."""

    def __init__(self, template: Path, cache: Path) -> None:
        """Render ``template`` into folders under ``cache``."""
        self.template = template
        self.cache = cache
        self.render = render.render

    def folder(self, answers: dict[str, Any], ref: str, last: Path | None = None) -> Path:
        """Return the folder that is rendered; nobody may change it."""
        before = public(last) if last else None
        key = json.dumps([answers, ref, before], sort_keys=True)
        folder = self.cache / hashlib.sha256(key.encode()).hexdigest()[:16]
        if not folder.exists():
            with FileLock(folder.with_suffix(".lock")):
                if not folder.exists():
                    part = folder.with_suffix(".part")
                    self.render(part, Job(answers, str(self.template), ref, last))
                    part.rename(folder)
        return folder

    @contextmanager
    def __call__(self, *jobs: Job) -> Iterator[list[Path]]:
        """Render as the product does."""
        assert {job.source for job in jobs} == {str(self.template)}
        yield [self.folder(dict(job.answers), str(job.ref), job.last) for job in jobs]


def public(answers: Path) -> dict[str, Any]:
    """The answers in a file, without copier's own."""
    given = yaml.safe_load(answers.read_text("utf-8"))
    return {key: answer for key, answer in given.items() if not key.startswith("_")}
