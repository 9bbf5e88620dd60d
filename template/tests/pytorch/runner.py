"""Runs test files, each in its own processes, and records the outcome of every test.

If a process dies or hangs, only the test that it ran fails. Another process continues after it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytorch.expectations import Case

CHILD = Path(__file__).with_name("child.py")
PATIENCE = 20
"""How many tests of a file may end their process before the file is given up."""
COLLECTING = 10
"""How many times the limit of one test a file may take until its tests are collected."""

OF_OPERATORS = b"@ops("
"""The decorator of a test that runs for each operator of a list."""

FATAL = "Fatal Python error: "
FOREIGN = (
    *("CI", "IN_CI", "DISABLED_TESTS_FILE", "SLOW_TESTS_FILE", "TORCH_TEST_DEVICES"),
    *(f"PYTORCH_TESTING_DEVICE_{name}" for name in ("ONLY_FOR", "EXCEPT_FOR", "FOR_CUSTOM")),
)
"""Variables that make PyTorch select other tests or devices. CI systems may set them."""


@dataclass(frozen=True)
class Settings:
    """The settings of all files of a run. Times are in seconds."""

    folder: Path
    build: Path
    known: tuple[Path, ...]
    environment: dict[str, str] = field(default_factory=dict)
    timeout: float = 300.0
    jobs: int = 1
    choose: str = ""
    bypass: bool = False
    part: tuple[int, int] = (0, 1)
    """Which part of how many equal parts of a file's tests runs."""


@dataclass
class Result:
    """The outcome of one test: pass, fail, skip, expected, crash or timeout."""

    outcome: str
    reason: str = ""
    seconds: float = 0.0


@dataclass
class FileResult:
    """The outcome of one file. ``broken``: why not all of its tests are known."""

    file: str
    tests: dict[str, Case] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    broken: str = ""
    left_out: str = ""
    seconds: float = 0.0
    running: str = ""
    collected: bool = False

    def take(self, event: dict[str, Any]) -> None:
        """Apply one event of the child."""
        kind = event.pop("event")
        if kind == "test":
            group, _, name = event["id"].partition("::")
            test = Case(
                self.file,
                group,
                event["template"],
                name,
                event["operator"],
                tuple(event["dtypes"]),
            )
            self.tests[test.id] = test
        elif kind == "start":
            self.running = event["id"]
        elif kind == "end":
            name = event.pop("id")
            self.results[name] = Result(**event)
            self.running = ""
        elif kind == "broken":
            self.broken = f"cannot be imported: {event['reason']}"
        elif kind == "collected":
            self.collected = True

    def add(self, other: FileResult) -> None:
        """Add another part of the same file."""
        self.tests |= other.tests
        self.results |= other.results
        self.broken = self.broken or other.broken
        self.seconds = round(self.seconds + other.seconds, 1)


class Events:
    """The lines that a child has written. The last one may be incomplete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0

    def new(self) -> list[dict[str, Any]]:
        """Return the new events."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self.position)
            added = file.read()
        whole = added[: added.rfind(b"\n") + 1]
        self.position += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


def _last_word(log: Path) -> str:
    """Return the error of Python's fault handler, or the last line of a process."""
    text = log.read_text("utf-8", "replace")
    if FATAL in text:
        return text[text.index(FATAL) :].splitlines()[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _watch(child: subprocess.Popen[bytes], events: Events, result: FileResult, limit: float) -> str:
    """Read events until the child ends. Return "timeout" if it was killed, else an empty string."""
    last = time.monotonic()
    while True:
        ended = child.poll() is not None
        for event in events.new():
            result.take(event)
            last = time.monotonic()
        if ended:
            return ""
        if time.monotonic() - last > limit * (1 if result.collected else COLLECTING):
            child.kill()
            child.wait()
            for event in events.new():
                result.take(event)
            return "timeout"
        time.sleep(0.05)


def run_file(file: str, settings: Settings) -> FileResult:
    """Run one file to its end, also if tests end their processes."""
    started = time.monotonic()
    result = FileResult(file)
    number, parts = settings.part
    place = settings.build / file.replace("/", ".") / ("" if parts == 1 else f"part-{number}")
    place.mkdir(parents=True, exist_ok=True)
    events = Events(place / "events.jsonl")
    events.path.unlink(missing_ok=True)
    threads = str(max(1, (os.cpu_count() or 1) // settings.jobs))
    environment = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    environment |= {"OMP_NUM_THREADS": threads, "PYTORCH_PRINT_REPRO_ON_FAILURE": "0"}
    environment |= settings.environment
    for _ in range(PATIENCE):
        job = {
            "file": file,
            "folder": str(settings.folder),
            "events": str(events.path),
            "known": [str(path) for path in settings.known],
            "done": sorted(result.results),
            "choose": settings.choose,
            "bypass": settings.bypass,
            "part": settings.part,
        }
        (place / "job.json").write_text(json.dumps(job), "utf-8")
        result.collected = False
        log = place / "log.txt"
        with log.open("wb") as output:
            child = subprocess.Popen(
                [sys.executable, str(CHILD), str(place / "job.json")],
                cwd=settings.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            ended = _watch(child, events, result, settings.timeout)
        if result.broken or not result.running:
            if not result.broken and not (
                result.collected and result.tests.keys() <= result.results.keys()
            ):
                result.broken = ended or f"ended with {child.returncode}: {_last_word(log)}"
            break
        reason = f"more than {settings.timeout:g} s" if ended else _last_word(log)
        result.results[result.running] = Result(ended or "crash", reason)
        result.running = ""
    else:
        result.broken = f"{PATIENCE} tests ended their process, and the others were given up"
    result.seconds = round(time.monotonic() - started, 1)
    return result


def run(
    files: Iterable[str], settings: Settings, say: Callable[[FileResult], None]
) -> list[FileResult]:
    """Run files in parallel, and call ``say`` for each finished one. Results are in order of files.

    Files with tests of all operators, which take hours, run in as many parts as there are jobs.
    """
    waiting: dict[str, int] = {}
    whole: dict[str, FileResult] = {}
    lock = threading.Lock()

    def one(file: str, part: tuple[int, int]) -> None:
        result = run_file(file, replace(settings, part=part))
        with lock:
            whole.setdefault(file, FileResult(file)).add(result)
            waiting[file] -= 1
            if waiting[file] == 0:
                say(whole[file])

    with ThreadPoolExecutor(settings.jobs) as pool:
        for file in files:
            source = (settings.folder / file).read_bytes()
            waiting[file] = settings.jobs if OF_OPERATORS in source else 1
        tasks = [
            pool.submit(one, file, (number, parts))
            for file, parts in list(waiting.items())
            for number in range(parts)
        ]
    for task in tasks:
        task.result()
    return [whole[file] for file in waiting]
