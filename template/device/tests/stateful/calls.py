"""Calls of the device, and the model's expectations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import device_library
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize
from stateful.model import LOST, Event, Failure, Model, Stream

SIZE = 64


class Block:
    """Some bytes, their content once all work is done, and the streams that used them last."""

    def __init__(self, address: int, device: int, buffer: Any = None) -> None:
        self.address, self.device, self.buffer = address, device, buffer
        self.expected: npt.NDArray[np.uint8] | None = None  # null: anything
        self.stream: Stream | None = None


class Calls(RuleBasedStateMachine):
    """The device's calls, each with the model's expectation."""

    def __init__(self) -> None:
        super().__init__()
        self.api = device_library.load()
        self.layers = self.api.layers()
        self.api.set_layers(["faults", *(name for name in self.layers if name != "faults")])
        self.devices = min(2, self.api.device_count())
        self.model = Model()
        self.blocks: list[Block] = []
        self.streams: list[Stream] = []
        self.events: list[Event] = []

    @initialize()
    def begin(self) -> None:
        for device in range(self.devices):
            for _ in range(2):
                buffer = self.api.Buffer(device, SIZE)
                self.blocks.append(Block(buffer.address, device, buffer))
                self.streams.append(Stream(self.api.create_stream(device, 0), device))
            self.events.append(Event(self.api.create_event(device, False), device))
            for block in self.blocks[-2:]:  # not zero: a copy into zeros would be invisible
                self.api.fill_bytes(self.streams[-1].handle, block.address, 7, SIZE)
            self.api.synchronize_stream(self.streams[-1].handle)
        self.blocks.append(Block(self.api.allocate_host(SIZE), self.api.HOST))

    def teardown(self) -> None:
        self.api.faults.clear()
        for stream in self.streams:
            self.api.destroy_stream(stream.handle)
        for event in self.events:
            self.api.destroy_event(event.handle)
        for block in self.blocks:
            assert block.buffer is None or block.buffer.guards_intact()
            self.give_back(block)
        self.api.set_layers(self.layers)

    # --- Calls, with the model's expectations ---

    def throws(self, call: Callable[[], object], code: str) -> Any:
        """Returns the error without its traceback. A traceback keeps buffers alive in a cycle. Their
        destructor copies, and could take the injected failure of a later program.
        """
        try:
            call()
        except (self.api.DeviceError, MemoryError) as error:
            assert error.code is self.api.ErrorCode[code.upper()]
            return error.with_traceback(None)
        pytest.fail(f"{code} was not thrown")

    def attempt(
        self,
        kind: str,
        call: Callable[[], object],
        device: int,
        others: tuple[int, ...] = (),
        work: tuple[Stream, str] | None = None,
    ) -> bool:
        """Makes a call that may fail by an injected fault. Returns whether it has succeeded."""
        if self.model.lost.keys() & {device, *others}:
            self.throws(call, LOST)
            return False
        fault = self.model.strike(kind, work is not None)
        if fault is not None and not fault.later:
            error = self.throws(call, fault.code)
            assert (error.device, error.operation) == (self.api.HOST, None)
            if fault.code == LOST and device != self.api.HOST:
                self.model.lost.setdefault(device, Failure(LOST, "", device, None, 0))
            return False
        call()
        if fault is None or work is None:
            return True
        stream, operation = work
        origin = (fault.code, operation, stream.device, stream.handle)
        stream.failures.append(Failure(*origin, fault.overlooked))
        return kind == "event"

    def obtain(self, kind: str, call: Callable[[], Any], device: int) -> list[Any]:
        """The result of a call that may fail by an injected fault; nothing if it failed."""
        made: list[Any] = []
        self.attempt(kind, lambda: made.append(call()), device)
        return made

    def record(self, event: Event, stream: Stream) -> bool:
        def call() -> None:
            self.api.record(event.handle, stream.handle)

        done = self.attempt("event", call, stream.device, work=(stream, "record"))
        if done:
            self.model.record(event, stream)
        return done

    def wait(self, stream: Stream, event: Event) -> bool:
        def call() -> None:
            self.api.wait(stream.handle, event.handle)

        if stream.device in self.model.lost:
            self.throws(call, LOST)
            return False
        call()
        self.model.wait(stream, event)
        return True

    def follow(self, stream: Stream, *blocks: Block) -> bool:
        """Orders the stream's next work after all uses of the blocks; False on failure."""
        for block in blocks:
            last = block.stream
            if last is None or last is stream or last.handle is None:
                continue
            event = next(event for event in self.events if event.device == last.device)
            if not (self.record(event, last) and self.wait(stream, event)):
                return False
        return True

    def use(self, stream: Stream, *blocks: Block) -> None:
        for block in blocks:
            block.stream = stream

    def settle(self, stream: Stream) -> None:
        """Waits for a stream's work, and ignores failures."""
        if stream.device in self.model.lost:  # queries report immediately that its work has failed
            self.throws(lambda: self.api.synchronize_stream(stream.handle), LOST)
            return
        failed = self.ask(lambda: self.api.query_stream(stream.handle))
        assert failed is self.model.query(stream)

    def ask(self, query: Callable[[], object]) -> bool:
        while (progress := query()) is self.api.Progress.PENDING:
            pass
        return progress is self.api.Progress.FAILED

    def compare(self, error: Any, expected: Failure | None) -> None:
        if expected is None:
            assert error is None, error
            return
        assert error is not None, f"{expected} was not thrown"
        code, operation, device, stream = expected.origin
        assert error.code is self.api.ErrorCode[code.upper()]
        if operation:
            assert (error.operation, error.device) == (operation, device)
            assert error.stream == stream

    def synchronize(self, call: Callable[[], object], point: Stream | None) -> None:
        error = None
        try:
            call()
        except (self.api.DeviceError, MemoryError) as caught:
            error = caught.with_traceback(None)
        self.compare(error, None if point is None else self.model.synchronize(point))

    def give_back(self, block: Block) -> None:
        if block.buffer is not None:
            block.buffer = None
        elif block.device == self.api.HOST:
            self.api.deallocate_host(block.address)
        else:
            self.api.deallocate(block.device, block.address)

    def place(self, index: int, block: int) -> tuple[Stream, Block]:
        """Memory of a device, and a stream of this device."""
        blocks = [block for block in self.blocks if block.device != self.api.HOST]
        chosen: Block = self.pick(blocks, block)
        streams = [stream for stream in self.streams if stream.device == chosen.device]
        return self.pick(streams, index), chosen

    def pick(self, items: list[Any], index: int) -> Any:
        return items[index % len(items)]
