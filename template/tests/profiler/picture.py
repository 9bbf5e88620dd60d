"""Draws docs/features/profiler.svg: the trace of a step of examples/gpt.py.

cd tests && python -m profiler.picture
"""

from __future__ import annotations

import itertools
import runpy
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from backend import DEVICE
from profiler.traces import DEVICE_KINDS, Event, Trace, encloses, end, record, trace_of
from support import EXAMPLES

PICTURE = Path(__file__).parents[2] / "docs" / "features" / "profiler.svg"
LEFT, WIDTH, ROW = 110, 800, 34
MARGIN = 20  # microseconds
STYLE = (
    "text{font:12px sans-serif;fill:#333}.host{fill:#7aa6c2}.range{fill:#c9b8dc}.call{fill:#33678a}"
    ".work{fill:#d9822b;stroke:#fff;stroke-width:.4}.flow{stroke:#999;stroke-width:.3;fill:none}.name{fill:#fff}"
)


def steps_of(trace: Trace) -> Iterator[tuple[float, float]]:
    """Yield the start and the end of training steps. A step starts with the copy of its batch."""
    copies = [call for call in trace.of_kind("privateuse1_runtime") if call["name"] == "copy_bytes"]
    done = {event["args"]["correlation"]: end(event) for event in trace.work()}
    optimizers = [
        event for event in trace.of_kind("user_annotation") if "Optimizer.step" in event["name"]
    ]
    for before, optimizer in itertools.pairwise(optimizers):
        # The first copy reads the loss of the previous step.
        _, batch = [copy for copy in copies if end(before) < copy["ts"] < optimizer["ts"]]
        loss, *_ = [copy for copy in copies if copy["ts"] > end(optimizer)]
        yield batch["ts"], done[loss["args"]["correlation"]]


def outermost(events: Iterable[Event]) -> list[Event]:
    """Return the events of one thread that no other one encloses. ``events`` is sorted by start."""
    found: list[Event] = []
    for event in events:
        if not found or not encloses(found[-1], event):
            found.append(event)
    return found


def draw(trace: Trace, start: float, stop: float) -> str:
    """Return the picture of the trace between two times, as SVG."""
    scale = WIDTH / (stop - start)

    def at(time: float) -> float:
        return LEFT + (time - start) * scale

    def within(*kinds: str) -> list[Event]:
        return [event for event in trace.of_kind(*kinds) if start <= event["ts"] < stop]

    calls, work = within("privateuse1_runtime"), within(*DEVICE_KINDS)
    threads = list(dict.fromkeys(call["tid"] for call in calls))
    streams = list(dict.fromkeys((event["pid"], event["tid"]) for event in work))
    parts: list[str] = []
    top = 8

    def boxes(events: Iterable[Event], kind: str, height: int, below: int = 0) -> None:
        # Whole pixels, and one box in place of several that overlap.
        spans: list[tuple[int, int]] = []
        for event in events:
            left = round(at(event["ts"]))
            right = max(round(at(end(event))), left + 1)
            if spans and left < spans[-1][1]:
                left, right = spans[-1][0], max(right, spans.pop()[1])
            spans.append((left, right))
        shape = "".join(
            f"M{left} {top + below}h{right - left}v{height}H{left}z" for left, right in spans
        )
        parts.append(f'<path class="{kind}" d="{shape}"/>')

    def label(text: str, x: float, y: float, rest: str = "") -> None:
        parts.append(f'<text x="{x:.0f}" y="{y:.0f}"{rest}>{escape(text)}</text>')

    def names(events: Iterable[Event], below: int) -> None:
        for event in events:
            if event["dur"] * scale > 7 * len(event["name"]):
                label(event["name"], at(event["ts"]) + 3, top + below, ' class="name"')

    begins: dict[int, tuple[float, int]] = {}
    for number, thread in enumerate(threads):
        label("the program" if number == 0 else "its backward", 8, top + 14)
        own = [op for op in within("cpu_op", "user_annotation") if op["tid"] == thread]
        boxes([op for op in own if op["cat"] == "user_annotation"], "range", ROW - 8)
        operators = outermost(op for op in own if op["cat"] == "cpu_op")
        boxes(operators, "host", 16, 2)
        names(operators, 14)
        launched = [call for call in calls if call["tid"] == thread]
        boxes(launched, "call", 6, 20)
        for call in launched:
            begins[call["args"]["correlation"]] = at(call["ts"]), top + 26
        top += ROW
    top += 40
    arrows: dict[str, None] = {}
    for number, stream in enumerate(streams):
        own = [event for event in work if (event["pid"], event["tid"]) == stream]
        label(f"stream {number}" if number else "the device", 8, top + 14)
        boxes(own, "work", 18)
        names(own, 13)
        for event in own:
            if event["args"].get("correlation") in begins:
                x, y = begins[event["args"]["correlation"]]
                arrows[f"M{x:.0f} {y}L{at(event['ts']):.0f} {top}"] = None
        top += ROW
    flow = "".join(arrows)
    parts.append(f'<path class="flow" d="{flow}"/>')
    tick = 10 ** len(str(int((stop - start) / 4000))) * 250
    for number in range(int((stop - start) / tick) + 1):
        label(f"{number * tick / 1000:g} ms", at(start + number * tick), top + 4)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 10} {top + 14}">'
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        f"{''.join(parts)}</svg>\n"
    )


def main() -> None:
    """Train, and draw the shortest step."""
    train = runpy.run_path(str(EXAMPLES / "gpt.py"))["train"]
    trace = trace_of(record(lambda: train(DEVICE, 60)))
    start, stop = min(steps_of(trace), key=lambda step: step[1] - step[0])
    PICTURE.write_text(draw(trace, start - MARGIN, stop + MARGIN), "utf-8")


if __name__ == "__main__":
    main()
