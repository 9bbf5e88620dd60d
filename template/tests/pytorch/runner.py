"""Runs test files, each in processes of its own, and keeps what became of every test.

A process that dies or hangs costs the test that it ran; another one goes on behind that test.
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
"""How many tests of a file may end their process before the others are given up."""
COLLECTING = 10
"""How much longer than one test a file may take before its first test."""

OF_OPERATORS = b"@ops("
"""What stands before a test that is made for each operator of a list."""

FATAL = "Fatal Python error: "
FOREIGN = (
    *("CI", "IN_CI", "DISABLED_TESTS_FILE", "SLOW_TESTS_FILE", "TORCH_TEST_DEVICES"),
    *(f"PYTORCH_TESTING_DEVICE_{name}" for name in ("ONLY_FOR", "EXCEPT_FOR", "FOR_CUSTOM")),
)
"""Variables that make PyTorch choose other tests or devices, some of which its CI and others set."""


@dataclass(frozen=True)
class Settings:
    """What is the same for all files of a run; times in seconds."""

    folder: Path
    build: Path
    known: tuple[Path, ...]
    environment: dict[str, str] = field(default_factory=dict)
    timeout: float = 300.0
    jobs: int = 1
    choose: str = ""
    bypass: bool = False
    part: tuple[int, int] = (0, 1)
    """Which of how many equal parts of a file's tests are run."""


@dataclass
class Result:
    """What became of one test; ``outcome`` is pass, fail, skip, expected, crash or timeout."""

    outcome: str
    reason: str = ""
    seconds: float = 0.0


@dataclass
class FileResult:
    """What became of one file. ``broken`` says why its tests are not, or not all, known."""

    file: str
    tests: dict[str, Case] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    broken: str = ""
    left_out: str = ""
    seconds: float = 0.0
    running: str = ""
    collected: bool = False

    def take(self, event: dict[str, Any]) -> None:
        """Take in one event of the child."""
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
        """Take in another part of the same file."""
        self.tests |= other.tests
        self.results |= other.results
        self.broken = self.broken or other.broken
        self.seconds = round(self.seconds + other.seconds, 1)


class Events:
    """The lines that a child has written, of which the last may not be whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0

    def new(self) -> list[dict[str, Any]]:
        """Return what has been added."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self.position)
            added = file.read()
        whole = added[: added.rfind(b"\n") + 1]
        self.position += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


def _last_word(log: Path) -> str:
    """Return the error that Python's fault handler names, or what a process said last."""
    text = log.read_text("utf-8", "replace")
    if FATAL in text:
        return text[text.index(FATAL) :].splitlines()[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _watch(child: subprocess.Popen[bytes], events: Events, result: FileResult, limit: float) -> str:
    """Follow a child until it ends; return "timeout" if it had to be ended, else nothing."""
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
    """Run one file to its end, whatever its tests do to the processes that run them."""
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
    """Run files side by side, and tell of each when it is done; the order of results is that of files.

    Those with tests of all operators, which take hours, are run in as many parts as there are jobs.
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
