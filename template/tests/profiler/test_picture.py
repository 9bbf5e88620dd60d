"""The picture of docs/features/profiler.md has each call and its work."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import torch
from backend import DEVICE
from profiler.picture import LEFT, PICTURE, WIDTH, draw
from profiler.traces import RECORDS, Event, end, record, trace_of

pytestmark = RECORDS
SVG = "{http://www.w3.org/2000/svg}"


def shapes(picture: str, kind: str) -> str:
    """Return the paths of one kind, one after the other."""
    paths = ElementTree.fromstring(picture).iter(f"{SVG}path")
    return "".join(path.attrib["d"] for path in paths if path.attrib["class"] == kind)


def columns(picture: str, kind: str) -> set[int]:
    """Return the columns of pixels that have a box of this kind, and the column after its end,
    where a part of the box may begin after rounding.
    """
    boxes = re.findall(r"M(\d+) \d+h(\d+)", shapes(picture, kind))
    return {
        column for left, width in boxes for column in range(int(left), int(left) + int(width) + 1)
    }


def test_the_picture_shows_all_events_of_the_trace() -> None:
    leaf = torch.ones(10, device=DEVICE, requires_grad=True)
    trace = trace_of(record(lambda: (leaf * leaf).sum().backward()))
    calls = list(trace.of_kind("privateuse1_runtime"))
    events = [*trace.work(), *calls, *trace.of_kind("cpu_op")]
    first, last = min(event["ts"] for event in events), max(map(end, events)) + 1
    picture = draw(trace, first, last)

    def places(kind: list[Event]) -> set[int]:
        return {round(LEFT + (event["ts"] - first) * WIDTH / (last - first)) for event in kind}

    assert places(trace.work()) <= columns(picture, "work")
    assert places(calls) <= columns(picture, "call")
    assert places(list(trace.of_kind("cpu_op"))) <= columns(picture, "host")
    ends = re.findall(r"L(\d+) ", shapes(picture, "flow"))
    assert {int(place) for place in ends} == places(trace.work())


def test_the_page_has_a_picture() -> None:
    assert shapes(PICTURE.read_text("utf-8"), "work").count("M") > 50
