"""Collectives and messages between two processes, and between two devices of one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from groups.other_process import Other, RemoteError, refused
from groups.shared_numbers import read, write
from host_memory import at
from making import Make
from numpy.typing import NDArray
from runtime.work import in_threads
from simulator_knobs import Knobs

GROUP = "collectives"
TIMEOUT = 60_000
NUMBERS = np.arange(1000, dtype=np.int32)
MANY = 3_000_017
SOME = pytest.param(MANY, marks=pytest.mark.full)


@dataclass
class Pair:
    """Rank 0, this process, and rank 1, the other process. Each has its communicator, a stream and
    memory.
    """

    api: ModuleType
    other: Other
    communicator: Any
    stream: Any
    memory: int

    def call(self, dtype: str = "int32") -> tuple[Any, Any, Any, str]:
        return (self.communicator, self.stream, self.api.DType[dtype], "my call")

    def both(self, code: str) -> list[Any]:
        """Call a function on both ranks, with ``call`` and ``memory``; return both results."""
        there = self.other.ask(f"api.{code}")
        names = {"api": self.api, "call": self.call(), "memory": self.memory, "rank": 0}
        return [eval(f"api.{code}", names), there]

    def write(self, here: Any, there: Any) -> None:
        write(self.api, self.memory, here)
        self.other.run("write(memory, values)", values=np.asarray(there).tolist())

    def read(self, size: int, offset: int = 0) -> list[NDArray[np.int32]]:
        self.api.synchronize(self.stream)
        self.other.run("api.synchronize(stream)")
        there = self.other.ask(f"read(memory + {offset}, {size})")
        return [read(self.api, self.memory + offset, size), np.asarray(there, np.int32)]

    def failures(self) -> list[str]:
        """The failures of the streams, which are acknowledged."""
        with pytest.raises(self.api.DeviceError) as here:
            self.api.synchronize(self.stream)
        with pytest.raises(RemoteError) as there:
            self.other.run("api.synchronize(stream)")
        assert here.value.code is self.api.ErrorCode.COMMUNICATION
        assert there.value.code == "COMMUNICATION"
        self.api.acknowledge_device(0)
        self.other.run("api.acknowledge_device(0)")
        return [str(here.value), str(there.value)]


def begin(other: Other, identity: list[int]) -> None:
    other.run(
        "memory = api.allocate(0, 40_000_000); stream = api.create_stream(0, 0); rank = 1;"
        f"communicator = api.create_communicator(0, identity, 1, 2, {TIMEOUT});"
        "call = (communicator, stream, api.DType.int32, 'my call')",
        identity=identity,
    )


@pytest.fixture
def pair(api: ModuleType, other: Other, stream: Any) -> Iterator[Pair]:
    identity = api.make_communicator_id()
    assert api.can_communicate(identity) is None
    assert other.ask("api.can_communicate(identity)", identity=identity) is None
    memory = api.allocate(0, 40_000_000)
    # Each process may wait for the other.
    there = threading.Thread(target=begin, args=(other, identity))
    there.start()
    communicator = api.create_communicator(0, identity, 0, 2, TIMEOUT)
    there.join()
    yield Pair(api, other, communicator, stream, memory)
    api.abort_communicator(communicator)
    try:
        api.synchronize(stream)
    except api.DeviceError:
        api.acknowledge_device(0)
    api.destroy_communicator(communicator)
    api.deallocate(0, memory)


def test_a_communicator_has_its_rank_and_size(pair: Pair) -> None:
    assert pair.api.communicator_info(pair.communicator) == (0, 0, 2)
    assert pair.other.ask("api.communicator_info(communicator)") == [0, 1, 2]
    pair.api.check_communicator(pair.communicator)


@pytest.mark.parametrize("size", [1, 1000, MANY])
def test_all_reduce(pair: Pair, size: int) -> None:
    numbers = np.arange(size, dtype=np.int32)
    pair.write(numbers, numbers * 3)
    assert pair.both(f"all_reduce(call, memory, memory, {size}, api.Combine.sum)") == [None] * 2
    for result in pair.read(size):
        assert (result == numbers * 4).all()


def test_successive_collectives_need_no_wait(pair: Pair) -> None:
    pair.write(NUMBERS, NUMBERS)
    for _ in range(5):
        pair.both("all_reduce(call, memory, memory, 1000, api.Combine.sum)")
    for result in pair.read(1000):
        assert (result == NUMBERS * 32).all()


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("sum", np.add),
        ("product", np.multiply),
        ("minimum", np.minimum),
        ("maximum", np.maximum),
        ("and", np.bitwise_and),
        ("or", np.bitwise_or),
        ("xor", np.bitwise_xor),
    ],
)
def test_operations(pair: Pair, op: str, function: Any) -> None:
    first, second = NUMBERS, NUMBERS[::-1] % 37
    pair.write(first, second)
    answers = pair.both(f"all_reduce(call, memory, memory, 1000, api.Combine['{op}'])")
    if answers != [None, None]:
        assert answers[0] == answers[1]
        pytest.skip(f"unsupported: {answers[0]}")
    for result in pair.read(1000):
        assert (result == function(first, second)).all()


@pytest.mark.parametrize("root", [0, 1])
@pytest.mark.parametrize("size", [10, SOME])
def test_reduce_and_broadcast(pair: Pair, root: int, size: int) -> None:
    numbers = np.arange(size, dtype=np.int32)
    pair.write(numbers, numbers * 3)
    pair.both(f"reduce_to(call, memory, memory, {size}, api.Combine.sum, {root})")
    assert (pair.read(size)[root] == numbers * 4).all()
    assert (pair.read(size)[1 - root] == numbers * (3, 1)[root]).all()
    pair.both(f"broadcast(call, memory, memory, {size}, {root})")
    for result in pair.read(size):
        assert (result == numbers * 4).all()


@pytest.mark.parametrize("size", [7, SOME])
def test_gathering_and_scattering(pair: Pair, size: int) -> None:
    numbers = np.arange(size, dtype=np.int32)
    pair.write(numbers, numbers + 5)
    pair.both(f"all_gather(call, memory + {4 * size}, memory, {size})")
    both = np.concatenate([numbers, numbers + 5])
    for result in pair.read(2 * size, 4 * size):
        assert (result == both).all()
    pair.both(f"reduce_scatter(call, memory, memory + {4 * size}, {size}, api.Combine.sum)")
    for result, part in zip(pair.read(size), np.split(both, 2), strict=True):
        assert (result == 2 * part).all()


def test_all_to_all_of_uneven_parts(pair: Pair) -> None:
    pair.write(NUMBERS, NUMBERS + 5000)
    api, there = pair.api, pair.memory + 4000
    pair.other.run("api.all_to_all(call, memory + 4000, memory, [700, 300], [20, 300])")
    api.all_to_all(pair.call(), there, pair.memory, [0, 20], [0, 700])
    here, other = pair.read(700, 4000)
    assert (here == NUMBERS[:700] + 5000).all()
    assert (other[:20] == NUMBERS[:20]).all()
    assert (other[20:320] == NUMBERS[700:] + 5000).all()


@pytest.mark.parametrize("size", [1, SOME])
def test_messages_by_tag(pair: Pair, make: Make, size: int) -> None:
    numbers = np.arange(size, dtype=np.int32)
    pair.write(numbers, 0)
    api, later = pair.api, make.stream()
    first, second = (
        (*pair.call()[:1], stream, *pair.call()[2:]) for stream in (pair.stream, later)
    )
    if api.send(second, pair.memory, size, 1, 7) is not None:
        pytest.skip("the device has no tags")
    api.send(first, pair.memory, size, 1, 9)
    pair.other.run(f"api.receive(call, memory, {size}, 0, 9, 0)")
    pair.other.run(f"api.receive(call, memory + {4 * size}, {size}, 0, 7, 0)")
    api.synchronize(later)
    for offset in (0, 4 * size):
        assert (pair.read(size, offset)[1] == numbers).all()


def test_a_message_from_any_rank(pair: Pair, make: Make) -> None:
    source = make.pinned(4)
    pair.write(0 * NUMBERS, NUMBERS)
    if pair.api.receive(pair.call(), pair.memory, 1000, -1, 0, source) is not None:
        pytest.skip("the device receives from named ranks only")
    pair.other.run("api.send(call, memory, 1000, 0, 0)")
    assert (pair.read(1000)[0] == NUMBERS).all()
    assert at(source, 4).tolist() == [1, 0, 0, 0]


def test_messages_of_a_group_do_not_wait_for_each_other(pair: Pair) -> None:
    pair.write(NUMBERS, NUMBERS + 3)
    pair.other.run(
        "api.begin_group(); api.send(call, memory, 1000, 0, 0);"
        "api.receive(call, memory + 4000, 1000, 0, 0, 0); api.end_group()"
    )
    api = pair.api
    api.begin_group()
    api.send(pair.call(), pair.memory, 1000, 1, 0)
    api.receive(pair.call(), pair.memory + 4000, 1000, 1, 0, 0)
    api.end_group()
    here, there = pair.read(1000, 4000)
    assert (here == NUMBERS + 3).all()
    assert (there == NUMBERS).all()


def test_a_barrier_blocks_the_stream_until_all_ranks_have_called_it(pair: Pair) -> None:
    pair.api.barrier(pair.call())
    time.sleep(0.1)
    assert not pair.api.is_idle(pair.stream)
    pair.other.run("api.barrier(call)")
    pair.read(1)


def test_parts_of_a_communicator(pair: Pair) -> None:
    pair.write(NUMBERS, NUMBERS)
    ask = "part = api.split_communicator(communicator, 4, 0, 60_000)"
    there = threading.Thread(target=pair.other.run, args=(ask,))
    there.start()
    part = pair.api.split_communicator(pair.communicator, 4, 1, TIMEOUT)
    there.join()
    assert pair.api.communicator_info(part) == (0, 1, 2)
    assert pair.other.ask("api.communicator_info(part)") == [0, 0, 2]
    pair.other.run("api.all_reduce((part, *call[1:]), memory, memory, 1000, api.Combine.sum)")
    call = (part, *pair.call()[1:])
    pair.api.all_reduce(call, pair.memory, pair.memory, 1000, pair.api.Combine.sum)
    for result in pair.read(1000):
        assert (result == NUMBERS * 2).all()
    pair.api.destroy_communicator(part)


def test_two_devices_of_one_process(api: ModuleType, second_device: int, make: Make) -> None:
    identity = api.make_communicator_id()
    memories = [api.allocate(device, 4000) for device in (0, second_device)]
    streams = [make.stream(device) for device in (0, second_device)]
    communicators: list[Any] = [None, None]

    def run(rank: int) -> None:
        device = (0, second_device)[rank]
        write(api, memories[rank], NUMBERS * (rank + 1), device)
        communicators[rank] = api.create_communicator(device, identity, rank, 2, TIMEOUT)
        call = (communicators[rank], streams[rank], api.DType.int32, "both")
        api.all_reduce(call, memories[rank], memories[rank], 1000, api.Combine.sum)
        api.synchronize(streams[rank])

    in_threads(run, 2)
    for rank, device in enumerate((0, second_device)):
        assert (read(api, memories[rank], 1000, device) == NUMBERS * 3).all()
        api.destroy_communicator(communicators[rank])
        api.deallocate(device, memories[rank])


def test_messages_need_only_their_two_ranks(
    api: ModuleType, simulator: Knobs, other: Other, stream: Any, numbers: int
) -> None:
    identity = api.make_communicator_id()
    communicator = api.create_communicator(0, identity, 0, 3, TIMEOUT)
    other.run(
        f"third = api.create_communicator(0, identity, 2, 3, {TIMEOUT});"
        "stream = api.create_stream(0, 0); memory = api.allocate(0, 4000);"
        "api.receive((third, stream, api.DType.int32, 'here'), memory, 1000, 0, 0, 0)",
        identity=identity,
    )
    api.send((communicator, stream, api.DType.int32, "there"), numbers, 1000, 2, 0)
    api.synchronize(stream)
    other.run("api.synchronize(stream)")
    assert other.ask("read(memory)") == NUMBERS.tolist()
    api.destroy_communicator(communicator)


def test_different_calls_fail_on_both_ranks(pair: Pair, simulator: Knobs) -> None:
    pair.write(NUMBERS, NUMBERS)
    pair.other.run("api.all_reduce(call, memory, memory, 900, api.Combine.sum)")
    pair.api.all_reduce(pair.call(), pair.memory, pair.memory, 1000, pair.api.Combine.sum)
    for failure in pair.failures():
        assert failure.startswith("my call failed: rank ")
        assert "give all ranks tensors of the same size and type" in failure
    pair.both("all_reduce(call, memory, memory, 1000, api.Combine.sum)")
    for result in pair.read(1000):
        assert (result == NUMBERS * 2).all()


def test_an_abort_fails_pending_and_later_calls(pair: Pair) -> None:
    api = pair.api
    pair.other.run("api.all_reduce(call, memory, memory, 10, api.Combine.sum)")
    api.abort_communicator(pair.communicator)
    with refused(api, "was aborted", code="COMMUNICATION"):
        api.check_communicator(pair.communicator)
    with refused(api, "was aborted", code="COMMUNICATION"):
        api.all_reduce(pair.call(), pair.memory, pair.memory, 10, api.Combine.sum)


def test_an_abort_fails_the_calls_of_other_ranks(pair: Pair, simulator: Knobs) -> None:
    pair.both("barrier(call)")
    pair.read(1)
    pair.other.run("api.all_reduce(call, memory, memory, 10, api.Combine.sum)")
    pair.api.abort_communicator(pair.communicator)
    with pytest.raises(RemoteError, match="rank 0 has aborted"):
        pair.other.run("api.synchronize(stream)")


def test_a_process_that_ends_is_a_failure_of_the_others(pair: Pair, simulator: Knobs) -> None:
    pair.both("all_reduce(call, memory, memory, 10, api.Combine.sum)")
    pair.read(1)
    pair.api.all_reduce(pair.call(), pair.memory, pair.memory, 10, pair.api.Combine.sum)
    pair.other.kill()
    with refused(pair.api, "my call failed: process .* has ended", code="COMMUNICATION"):
        pair.api.synchronize(pair.stream)
    with refused(pair.api, "has ended", code="COMMUNICATION"):
        pair.api.check_communicator(pair.communicator)
    pair.api.acknowledge_device(0)


def test_an_unknown_id_is_refused(api: ModuleType, simulator: Knobs) -> None:
    assert "several machines" in api.can_communicate([0] * 4608)


def test_the_layer_validate_checks_collectives(pair: Pair) -> None:
    with pytest.raises(RemoteError, match=r"contract of all_reduce: output 0x.* reaches"):
        pair.other.run("api.all_reduce(call, memory, memory, 20_000_000, api.Combine.sum)")
    with pytest.raises(RemoteError, match="contract of broadcast: root is rank 2 of 2"):
        pair.other.run("api.broadcast(call, memory, memory, 1, 2)")
