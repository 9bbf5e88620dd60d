"""What is packed comes out again, whatever it is."""

from __future__ import annotations

import random

import pytest

from maintenance.site import build, packing
from unpacking import contents, data

DRAWN = random.Random(7)
LINE = "".join(chr(DRAWN.randrange(32, 127)) for _ in range(60))
TEXTS = {
    "empty": "",
    "one": "a",
    "last": chr(packing.CHARACTERS - 1),
    "zeros": "\0" * 1000,
    "random": "".join(chr(DRAWN.randrange(packing.CHARACTERS)) for _ in range(20_000)),
    "bytes": "".join(chr(DRAWN.randrange(256)) for _ in range(20_000)),
    "run": "a" * 100_000,
    "run and random": "ab" * 20_000 + "".join(chr(DRAWN.randrange(128)) for _ in range(1000)),
    "again": "".join(
        LINE[:at] + chr(DRAWN.randrange(32, 127)) + LINE[at:]
        for at in DRAWN.choices(range(60), k=900)
    ),
    # The rarest of these have the longest codes.
    "uneven": "".join(chr(at) * (1 << at) for at in range(17)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_comes_out_as_it_was_packed(name: str) -> None:
    packed = packing.pack(TEXTS[name])
    assert packing.unpack(packed) == TEXTS[name]
    assert packing.pack(TEXTS[name]) == packed


def test_what_has_an_order_is_packed_well() -> None:
    assert len(packing.pack(TEXTS["run"])) < 400
    assert len(packing.pack(TEXTS["bytes"])) < 21_500


def test_a_character_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match=r"below U\+1000, not U\+2014"):
        packing.pack("a \N{EM DASH} b")


def test_bytes_that_are_not_packed_text_end() -> None:
    for size in (4, 5, 40, 4000):
        packed = (300).to_bytes(4, "little") + DRAWN.randbytes(size - 4)
        assert len(packing.unpack(packed)) == 300


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 6, 7, 48, 1000])
def test_letters_stand_for_any_bytes(size: int) -> None:
    for content in (bytes(size), b"\xff" * size, DRAWN.randbytes(size)):
        letters = build.printable(content)
        assert "<" not in letters
        assert data(letters) == content


def test_words_and_capitals_come_back() -> None:
    text = [
        "class Tensor",
        "CUDA_ERROR",
        "cAmel camelCase XMLHttp A aB",
        "a\nb\\n\t",
        "\u20ac <&\0",
    ]
    content = {"texts": text * build.FREQUENT}
    assert contents(packing.unpack(build.packed(content))) == content
