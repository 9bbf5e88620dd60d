"""Random programs on two devices with failures, compared with a model of bytes and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test
from stateful.calls import SIZE, Block, Calls
from stateful.model import LOST, Event, Fault, Model, Stream

INDEX = st.integers(0, 11)
VALUE = st.integers(0, 255)
CALLS = st.sampled_from(["allocate", "allocate_host", "copy", "launch", "event"])
HAVE_WORK = ("copy", "launch", "event")


class Programs(Calls):
    """Each step is one call, and the waits that order it."""

    # --- Memory ---

    @precondition(lambda self: len(self.blocks) < 12)
    @rule(device=st.integers(0, 1))
    def allocate(self, device: int) -> None:
        device %= self.devices
        for address in self.obtain("allocate", lambda: self.api.allocate(device, SIZE), device):
            self.blocks.append(Block(address, device))

    @precondition(lambda self: len(self.blocks) < 12)
    @rule()
    def allocate_host(self) -> None:
        host = self.api.HOST
        for address in self.obtain("allocate_host", lambda: self.api.allocate_host(SIZE), host):
            self.blocks.append(Block(address, host))

    @rule(index=INDEX)
    def free(self, index: int) -> None:
        extra = [block for block in self.blocks[1:] if block.buffer is None]
        if len(extra) < 2:
            return
        block = self.pick(extra, index)
        if block.stream is not None and block.stream.handle is not None:
            self.settle(block.stream)
        self.blocks.remove(block)
        self.give_back(block)

    # --- Data ---

    @rule(index=INDEX, to=INDEX, value=VALUE)
    def fill_bytes(self, index: int, to: int, value: int) -> None:
        stream, block = self.place(index, to)
        if not self.follow(stream, block):
            return

        def call() -> None:
            self.api.fill_bytes(stream.handle, block.address, value, SIZE)

        if self.attempt("launch", call, stream.device, work=(stream, "fill_bytes")):
            block.expected = np.full(SIZE, value, np.uint8)
        self.use(stream, block)

    @rule(index=INDEX, to=INDEX, source=INDEX)
    def copy(self, index: int, to: int, source: int) -> None:
        there, here = self.pick(self.blocks, to), self.pick(self.blocks, source)
        devices = {there.device, here.device} - {self.api.HOST}
        streams = [stream for stream in self.streams if stream.device in devices]
        if there is here or not streams:
            return
        stream = self.pick(streams, index)
        if not self.follow(stream, there, here):
            return

        def call() -> None:
            places = (there.address, there.device), (here.address, here.device)
            self.api.copy_bytes(stream.handle, *places, SIZE)

        others = tuple(devices)
        if self.attempt("copy", call, stream.device, others, (stream, "copy_bytes")):
            there.expected = here.expected
        self.use(stream, there, here)

    @rule(to=INDEX, value=st.binary(min_size=SIZE, max_size=SIZE), index=INDEX)
    def write(self, to: int, value: bytes, index: int) -> None:
        """Copies from pageable memory, which may be changed after the call."""
        stream, block = self.place(index, to)
        if not self.follow(stream, block):
            return
        source = np.frombuffer(value, np.uint8).copy()

        def call() -> None:
            place = (source.ctypes.data, self.api.HOST)
            self.api.copy_bytes(stream.handle, (block.address, block.device), place, SIZE)

        if self.attempt("copy", call, stream.device, work=(stream, "copy_bytes")):
            block.expected = source.copy()
        source[:] = 0
        self.use(stream, block)

    @rule(source=INDEX, index=INDEX)
    def read(self, source: int, index: int) -> None:
        """Copies to pageable memory, which has the bytes on return."""
        stream, block = self.place(index, source)
        if not self.follow(stream, block):
            return
        target = np.zeros(SIZE, np.uint8)

        def call() -> None:
            place = (target.ctypes.data, self.api.HOST)
            self.api.copy_bytes(stream.handle, place, (block.address, block.device), SIZE)

        done = self.attempt("copy", call, stream.device, work=(stream, "copy_bytes"))
        self.use(stream, block)
        if done and block.expected is not None:
            assert target.tolist() == block.expected.tolist()
        elif not done:
            assert not target.any()

    @rule(index=INDEX, out=INDEX, a=INDEX, b=INDEX, alpha=st.integers(-3, 3))
    def add(self, index: int, out: int, a: int, b: int, alpha: int) -> None:
        stream = self.pick(self.streams, index)
        blocks = [block for block in self.blocks if block.buffer and block.device == stream.device]
        three = [self.pick(blocks, number) for number in (out, a, b)]
        if not self.follow(stream, *three):
            return
        dtype, add = self.api.DType.int64, self.api.BinaryOp.add
        views = [block.buffer.view(0, dtype, [8], [1]) for block in three]
        reasons: list[str | None] = []

        def call() -> None:
            params = self.api.BinaryParams(alpha=alpha)
            reasons.append(self.api.binary(stream.handle, add, *views, params))

        # An unsupported call is not counted as a launch.
        if self.api.binary(stream.handle, add, *views, self.api.BinaryParams(), probe=True):
            return
        work = (stream, "the operation under test")
        if self.attempt("launch", call, stream.device, work=work):
            assert reasons == [None]
            x, y = (block.expected for block in three[1:])
            known = x is not None and y is not None
            three[0].expected = (
                (x.view(np.int64) + np.int64(alpha) * y.view(np.int64)).view(np.uint8)
                if known
                else None
            )
        self.use(stream, *three)

    # --- Streams and events ---

    @precondition(lambda self: len(self.streams) < 8)
    @rule(device=st.integers(0, 1))
    def create_stream(self, device: int) -> None:
        device %= self.devices
        if device in self.model.lost:
            self.throws(lambda: self.api.create_stream(device, 0), LOST)
        else:
            self.streams.append(Stream(self.api.create_stream(device, 0), device))

    @rule(index=INDEX)
    def destroy_stream(self, index: int) -> None:
        """Destroys a stream with known failures. test_errors.py tests unknown failures."""
        stream = self.pick(self.streams, index)
        if sum(other.device == stream.device for other in self.streams) < 3:
            return
        if stream.failures:
            return
        self.api.destroy_stream(stream.handle)
        self.streams.remove(stream)
        for block in self.blocks:
            if block.stream is stream:
                block.stream = None

    @precondition(lambda self: len(self.events) < 8)
    @rule(device=st.integers(0, 1))
    def create_event(self, device: int) -> None:
        device %= self.devices
        for handle in self.obtain("event", lambda: self.api.create_event(device, False), device):
            self.events.append(Event(handle, device))

    @rule(index=INDEX)
    def destroy_event(self, index: int) -> None:
        if len(self.events) > self.devices:
            event = self.events.pop(self.devices + index % (len(self.events) - self.devices))
            self.api.destroy_event(event.handle)

    @rule(index=INDEX, which=INDEX)
    def record_event(self, index: int, which: int) -> None:
        stream = self.pick(self.streams, index)
        self.record(self.pick([e for e in self.events if e.device == stream.device], which), stream)

    @rule(index=INDEX, which=INDEX)
    def wait_event(self, index: int, which: int) -> None:
        self.wait(self.pick(self.streams, index), self.pick(self.events, which))

    @rule(index=INDEX)
    def query_stream(self, index: int) -> None:
        stream = self.pick(self.streams, index)
        failed = self.ask(lambda: self.api.query_stream(stream.handle))
        assert failed is self.model.query(stream)

    @rule(which=INDEX)
    def query_event(self, which: int) -> None:
        event = self.pick(self.events, which)
        failed = self.ask(lambda: self.api.query_event(event.handle))
        assert failed is (event.mark is not None and self.model.query(event.mark))

    @rule(index=INDEX)
    def synchronize_stream(self, index: int) -> None:
        stream = self.pick(self.streams, index)
        self.synchronize(lambda: self.api.synchronize_stream(stream.handle), stream)

    @rule(which=INDEX)
    def synchronize_event(self, which: int) -> None:
        event = self.pick(self.events, which)
        self.synchronize(lambda: self.api.synchronize_event(event.handle), event.mark)

    @rule(device=st.integers(0, 1))
    def synchronize_device(self, device: int) -> None:
        """Only if at most one stream has a failure: the order of several is not specified."""
        device %= self.devices
        streams = [stream for stream in self.streams if stream.device == device]
        with_failures = [s for s in streams if s.failures]
        if len(with_failures) > 1 and device not in self.model.lost:
            return
        point = (with_failures or streams)[0]
        self.synchronize(lambda: self.api.synchronize_device(device), point)

    @rule(index=INDEX)
    def acknowledge_stream(self, index: int) -> None:
        stream = self.pick(self.streams, index)
        self.api.acknowledge_stream(stream.handle)
        self.model.acknowledge([stream], self.events)

    @rule(device=st.integers(0, 1))
    def acknowledge_device(self, device: int) -> None:
        device %= self.devices
        self.api.acknowledge_device(device)
        streams = [stream for stream in self.streams if stream.device == device]
        self.model.acknowledge(streams, self.events)

    # --- Faults ---

    @rule(
        call=CALLS,
        nth=st.integers(1, 3),
        code=st.sampled_from(["internal", "unsupported", "invalid_argument", LOST]),
        later=st.booleans(),
        overlooked=st.integers(0, 2),
    )
    def inject(self, call: str, nth: int, code: str, later: bool, overlooked: int) -> None:
        later = later and call in HAVE_WORK
        overlooked = overlooked if later else 0
        self.api.faults.inject(call, nth, code, later, overlooked)
        self.model.armed[call] = Fault(nth, code, later, overlooked)

    @rule(
        call=st.sampled_from(HAVE_WORK),
        code=st.sampled_from(["internal", "unsupported", LOST]),
        overlooked=st.sampled_from([0, 0, 0, 1]),
    )
    def inject_later(self, call: str, code: str, overlooked: int) -> None:
        """Injects failures of work that runs soon, which are rare otherwise."""
        self.inject(call=call, nth=1, code=code, later=True, overlooked=overlooked)

    @rule(most=st.integers(0, 200), seed=st.integers(0, 9))
    def set_delay(self, most: int, seed: int) -> None:
        self.api.faults.set_delay(0, most, seed)

    @precondition(lambda self: self.model.lost)
    @rule()
    def recover(self) -> None:
        """Resets lost devices, and clears all failures."""
        self.api.faults.clear()
        self.model = Model()
        for stream in self.streams:
            self.api.synchronize_stream(stream.handle)
            stream.failures.clear()
        for event in self.events:
            event.mark = None

    @invariant()
    def facts_are_known_of_every_device(self) -> None:
        for block in self.blocks[:2]:
            assert self.api.describe(block.device, block.address).device == block.device


def run(programs: int) -> None:
    """Runs programs of almost 50 steps each, always the same ones."""
    run_state_machine_as_test(
        Programs,
        settings=settings(
            max_examples=programs,
            stateful_step_count=50,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_programs_of_ten_thousand_steps() -> None:
    run(220)


@pytest.mark.full
def test_random_programs_of_a_hundred_thousand_steps() -> None:
    run(2200)
