"""Processes that run one function together, each as a rank of a group, and their results."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch.distributed as dist
from backend import DEVICE

TIMEOUT = 100
"""Seconds after which a call counts as hung."""

BACKENDS = f"cpu:gloo,{DEVICE}:{DEVICE}ccl"


class Ranks:
    """``size`` processes in one group, which serve calls until the end of the context.

    After a call that has failed, the next call starts new ones.
    """

    def __init__(self, size: int, store: Path, backends: str | None = BACKENDS) -> None:
        self.size = size
        self.store = store
        self.backends = backends
        self.starts = 0
        self.connections: list[Connection] = []
        self.processes: list[BaseProcess] = []
        self.start()

    def start(self) -> None:
        """Start the processes."""
        context = multiprocessing.get_context("spawn")
        self.starts += 1
        store = f"{self.store}-{self.starts}"
        for rank in range(self.size):
            here, there = context.Pipe()
            process = context.Process(
                target=_serve, args=(there, rank, self.size, store, self.backends), daemon=True
            )
            process.start()
            there.close()
            self.connections.append(here)
            self.processes.append(process)

    def call(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what ``function(rank, size, *arguments)`` returns on every rank.

        Raises:
            AssertionError: a rank has raised, ended, or not answered within TIMEOUT.
        """
        if not self.processes:
            self.start()
        try:
            return self._call(function, arguments)
        except AssertionError:
            self.end(patience=0)
            raise

    def _call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Any]:
        for connection in self.connections:
            connection.send((function, arguments))
        answers: dict[Connection, Any] = {}
        while len(answers) < len(self.connections):
            silent = [there for there in self.connections if there not in answers]
            ready = wait(silent, TIMEOUT)
            ranks = [self.connections.index(there) for there in silent]
            assert ready, f"ranks {ranks} do not answer {function.__name__}"
            # In order of arrival: a failure of one rank makes others wait.
            for there in ready:
                assert isinstance(there, Connection)
                try:
                    answers[there], failure = there.recv()
                except (EOFError, ConnectionError):
                    failure = "the process has ended"
                assert failure is None, f"rank {self.connections.index(there)}: {failure}"
        return [answers[there] for there in self.connections]

    def end(self, patience: float = 20) -> None:
        """End the processes, and kill those that do not end within ``patience`` seconds."""
        for connection in self.connections:
            connection.close()
        for process in self.processes:
            process.join(patience)
            process.kill()
            process.join()
        self.connections.clear()
        self.processes.clear()


def _serve(connection: Connection, rank: int, size: int, store: str, backends: str | None) -> None:
    dist.init_process_group(
        backends,
        store=dist.FileStore(store, size),
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=60),
    )
    while True:
        try:
            function, arguments = connection.recv()
        except (EOFError, ConnectionError):
            break
        try:
            connection.send((function(rank, size, *arguments), None))
        except BaseException:
            connection.send((None, traceback.format_exc()))
    dist.destroy_process_group()


@contextmanager
def ranks(size: int, folder: Path, backends: str | None = BACKENDS) -> Iterator[Ranks]:
    """Start ``size`` processes and end them."""
    started = Ranks(size, folder / f"store{size}", backends)
    try:
        yield started
    finally:
        started.end()
