"""The picture of docs/features/profiler.md has each call and what it led to."""

from __future__ import annotations

from xml.etree import ElementTree

import torch
from backend import DEVICE
from profiler.picture import PICTURE, draw
from profiler.traces import end, record, trace_of
from support import needs

pytestmark = needs(torch.float32)
SVG = "{http://www.w3.org/2000/svg}"


def counts(picture: str) -> dict[str, int]:
    """Return how many shapes there are of each kind."""
    paths = ElementTree.fromstring(picture).iter(f"{SVG}path")
    found: dict[str, int] = {}
    for path in paths:
        found[path.attrib["class"]] = found.get(path.attrib["class"], 0) + path.attrib["d"].count(
            "M"
        )
    return found


def test_a_picture_has_all_that_the_trace_has() -> None:
    leaf = torch.ones(10, device=DEVICE, requires_grad=True)
    trace = trace_of(record(lambda: (leaf * leaf).sum().backward()))
    events = [*trace.work(), *trace.of_kind("privateuse1_runtime", "cpu_op")]
    first, last = min(event["ts"] for event in events), max(map(end, events))
    found = counts(draw(trace, first, last + 1))
    assert found["work"] == found["call"] == found["flow"] == len(trace.work())
    assert found["host"] >= 3


def test_the_page_has_a_picture() -> None:
    assert counts(PICTURE.read_text("utf-8"))["work"] > 50
