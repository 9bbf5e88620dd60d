"""A template with six releases, which have every kind of change between them.

Files change, are added, removed, moved and restored. A question is renamed. A feature is added,
another one is retired.
"""

from __future__ import annotations

from pathlib import Path

import tiny

TAGS = tuple(f"v{number}.0.0" for number in range(1, 7))


def text(word: str, **changed: str) -> str:
    """Return twelve lines that no other file has, with changes: _3="another"."""
    lines = {f"_{number}": f"{word}, line {number}" for number in range(1, 13)}
    return "".join(f"{line}\n" for line in {**lines, **changed}.values())


FIRST = {
    "readme.txt": text("readme"),
    "src/a.txt": text("a"),
    "src/b.txt": text("b"),
    "doc/guide.txt": text("guide"),
    "about.txt": "made by {{ owner }}\n" + text("about"),
    "logo.bin": "\0logo 1\n",
    "amp/one.txt": text("amp one"),
    "amp/two.txt": text("amp two"),
    "rng/seed.txt": text("seed"),
}
SECOND = {
    **FIRST,
    "readme.txt": text("readme", _2="readme, two"),
    "src/c.txt": text("c"),
    "about.txt": "made by {{ owner }}\n" + text("about", _12="about, the end"),
}
THIRD = {
    **SECOND,
    "lib/b.txt": text("b", _5="b, five"),
    "about.txt": "made by {{ vendor }}\n" + text("about", _12="about, the end"),
    "storage/keep.txt": text("keep"),
}
del THIRD["doc/guide.txt"], THIRD["src/b.txt"]
FOURTH = {
    **THIRD,
    "readme.txt": text("readme", _2="readme, two", _8="readme, eight"),
    "src/a.txt": text("a", _7="a, seven"),
    "amp/deep/two.txt": text("amp two"),
    "doc/guide.txt": text("guide", _1="guide again"),
    "logo.bin": "\0logo 4\n",
}
del FOURTH["amp/two.txt"]
FIFTH = {
    **FOURTH,
    "lib/core/b.txt": text("b", _5="b, five", _1="b, one"),
    "about.txt": "made by {{ vendor }}\n" + text("about"),
}
del FIFTH["src/c.txt"], FIFTH["rng/seed.txt"], FIFTH["lib/b.txt"]
SIXTH = {
    **FIFTH,
    "readme.txt": "new\n" + text("readme", _8="readme, eight") + text("more"),
    "doc/new.txt": text("new"),
    "storage/deep/keep.txt": text("keep", _3="keep, three"),
}
del SIXTH["storage/keep.txt"]

MOVED: tuple[dict[str, str], ...] = (
    {},
    {},
    {"src/b.txt": "lib/b.txt"},
    {"amp/two.txt": "amp/deep/two.txt"},
    {"src/b.txt": "lib/core/b.txt", "lib/b.txt": "lib/core/b.txt"},
    {"storage/keep.txt": "storage/deep/keep.txt"},
)
FEATURES = {tag: ("amp", "rng", "storage")[: 2 if tag < TAGS[2] else 3] for tag in TAGS[:4]}
FEATURES |= dict.fromkeys(TAGS[4:], ("amp", "storage"))
RETIRED = dict.fromkeys(TAGS[4:], ("rng",))
OWNER = "owner: {type: str, default: nobody}\n"
VENDOR = """vendor: {type: str, default: "{{ owner if owner is defined else 'nobody' }}"}\n"""


def make(template: Path) -> None:
    """Write the template, with a commit and a tag for each release."""
    template.mkdir()
    moved: dict[str, str] = {}
    releases = (FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH)
    for tag, files, more in zip(TAGS, releases, MOVED, strict=True):
        moved |= more
        questions = OWNER if tag < TAGS[2] else VENDOR
        tiny.release(template, tag, files, moved, FEATURES[tag], RETIRED.get(tag, ()), questions)


def takes(tag: str) -> set[str]:
    """Return the features that a release accepts in answers."""
    return {*FEATURES[tag], *RETIRED.get(tag, ())}
