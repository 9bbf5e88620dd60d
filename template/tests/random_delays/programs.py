"""Programs that are correct on any device, however slow it is and wherever its memory is.

Each chooses its steps by its seed, and checks the results with arithmetic of the host.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import random
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from backend import DEVICE, backend
from support import has_function, keep_busy

Random = random.Random
SIZE = 1 << 12


def _devices() -> list[int]:
    return list(range(min(2, backend.device_count())))


def _filled(value: float, device: int, size: int = SIZE) -> torch.Tensor:
    return torch.full((size,), float(value), device=f"{DEVICE}:{device}")


def streams(draw: Random) -> None:
    """Chains of additions that move between streams of two devices by events and copies."""
    pool = [backend.Stream(device=device) for device in _devices() for _ in range(3)]
    chains: list[tuple[torch.Tensor, Any, float]] = []
    for stream in pool[:4]:
        with backend.stream(stream):
            chains.append((_filled(1, stream.device_index), stream, 1.0))
    for _ in range(40):
        place = draw.randrange(len(chains))
        tensor, before, value = chains[place]
        after = draw.choice(pool)
        event = torch.Event(DEVICE)
        event.record(before)
        event.wait(after)
        with backend.stream(after):
            if after.device_index == tensor.device.index:
                tensor.record_stream(after)
                result = tensor + 1 if draw.random() < 0.7 else tensor.add_(1)
            else:
                tensor.record_stream(before)
                with backend.stream(before):
                    result = tensor.to(after.device, non_blocking=True) + 1
        chains[place] = (result, after, value + 1)
    for tensor, stream, value in chains:
        with backend.stream(stream):
            assert tensor.cpu().eq(value).all()


def memory(draw: Random) -> None:
    """Tensors that are allocated and freed on several streams, and must keep their values."""
    pool = [backend.Stream(device=device) for device in _devices() for _ in range(2)]
    kept: list[tuple[torch.Tensor, Any, float]] = []
    for number in range(80):
        stream = draw.choice(pool)
        with backend.stream(stream):
            size = draw.choice([1, 100, SIZE, 10 * SIZE])
            kept.append((_filled(number, stream.device_index, size), stream, number))
        if draw.random() < 0.6:
            tensor, owner, value = kept.pop(draw.randrange(len(kept)))
            others = [other for other in pool if other.device_index == owner.device_index]
            user = draw.choice(others)
            user.wait_stream(owner)
            with backend.stream(user):
                wrong = tensor.ne(value).sum()
            tensor.record_stream(user)
            del tensor
            with backend.stream(user):
                assert wrong.item() == 0, value
    for tensor, owner, value in kept:
        with backend.stream(owner):
            assert tensor.cpu().eq(value).all()


def copies(draw: Random) -> None:
    """Sources that are changed or freed as soon as a copy from them has returned."""
    target = [torch.zeros(SIZE, device=f"{DEVICE}:{device}") for device in _devices()]
    totals = [torch.zeros(SIZE, device=x.device) for x in target]
    expected = [0.0 for _ in target]
    source = torch.empty(SIZE)
    for number in range(30):
        place = draw.randrange(len(target))
        if draw.random() < 0.5:
            target[place].copy_(source.fill_(number))
        else:
            pinned = torch.full((SIZE,), float(number)).pin_memory()
            target[place].copy_(pinned, non_blocking=True)
            del pinned
        source.fill_(-1)
        totals[place] += target[place]
        expected[place] += number
    for total, value in zip(totals, expected, strict=True):
        back = torch.empty(SIZE, pin_memory=True)
        back.copy_(total, non_blocking=True)
        backend.current_stream(total.device).synchronize()
        assert back.eq(value).all()


def growth(draw: Random) -> None:
    """Storages of each device that grow, and keep their contents."""
    for number in range(8):
        device = draw.choice(_devices())
        others = [_filled(-1, other, 64) for other in _devices()]
        tensor = _filled(number, device, 64)
        tensor.resize_(draw.choice([100, SIZE, 4 * SIZE]))
        assert tensor[:64].cpu().eq(number).all()
        assert all(other.cpu().eq(-1).all() for other in others)
        assert tensor.device.index == device


def graphs(draw: Random) -> None:
    """A graph over two streams whose input changes between the replays."""
    if not has_function("graphs", "begin_capture"):
        return
    given = torch.zeros(SIZE, device=DEVICE)
    side = backend.Stream()
    graph = backend.Graph()
    steps = draw.randrange(1, 5)
    with backend.graph(graph):
        result = given + 1
        side.wait_stream(backend.current_stream())
        with backend.stream(side):
            other = given * 2
            for _ in range(steps):
                other = other + 1
        backend.current_stream().wait_stream(side)
        result = result + other
    for number in range(5):
        given.copy_(torch.full((SIZE,), float(number)))
        graph.replay()
        stranger = _filled(-7, 0)
        assert result.cpu().eq(3 * number + 1 + steps).all()
        assert stranger.cpu().eq(-7).all()


def failures(draw: Random) -> None:
    """A failure of one stream is raised once for that stream, and not for another."""
    if not backend.get_device_properties().reports_errors:
        return
    bad, good = backend.Stream(), backend.Stream()
    table = torch.arange(4.0, device=DEVICE)
    wrong = torch.tensor([1, 99], device=DEVICE)
    backend.synchronize()
    with backend.stream(bad):
        lost = table[wrong]
    with backend.stream(good):
        assert (table + 1).tolist() == [1, 2, 3, 4]
    ways: list[Callable[[], object]] = [bad.synchronize, backend.synchronize, lambda: lost.cpu()]
    with backend.stream(bad):
        try:
            draw.choice(ways)()
        except RuntimeError as error:
            assert "index" in str(error), error
        else:
            raise AssertionError("the failure was lost")
        for wait in ways:
            wait()
        assert (table * 2).tolist() == [0, 2, 4, 6]


@contextlib.contextmanager
def _signals(handle: Callable[..., None], seconds: float) -> Iterator[None]:
    """Call ``handle`` every ``seconds`` in the main thread, but not within itself."""
    busy = False

    def once(number: int, frame: object) -> None:
        nonlocal busy
        if busy:
            return
        busy = True
        try:
            handle(number, frame)
        finally:
            busy = False

    before = signal.signal(signal.SIGALRM, once)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def handlers(draw: Random) -> None:
    """Signals come often, and their handler computes on the device."""
    calls: list[float] = []

    def handle(*_: object) -> None:
        calls.append(_filled(3, 0, 1 << 18).sum().item())

    with _signals(handle, draw.uniform(0.002, 0.01)):
        for number in range(10):
            tensors = [_filled(number, 0, 1 << draw.randrange(10, 20)) for _ in range(4)]
            assert all(tensor.cpu().eq(number).all() for tensor in tensors)
            backend.empty_cache()
    assert set(calls) <= {3.0 * (1 << 18)}


class _Interruption(Exception):
    """An exception that a signal handler raises, as that of Ctrl-C does."""


def _lend(connection: Any) -> None:
    """Share memory with another process, until that process sends a message."""
    connection.send(_filled(5, 0))
    connection.recv()


def interruptions(draw: Random) -> None:
    """A signal whose handler raises, while memory of another process waits to be released."""
    if not hasattr(backend, "ipc") or not has_function("sharing", "export_memory"):
        return
    came = False

    def handle(*_: object) -> None:
        nonlocal came
        came = True
        raise _Interruption

    context = multiprocessing.get_context("forkserver")
    connection, other = context.Pipe()
    lender = context.Process(target=_lend, args=(other,))
    lender.start()
    before = signal.signal(signal.SIGALRM, handle)
    try:
        borrowed = connection.recv()
        keep_busy(seconds=0.3)
        total = borrowed.sum()
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.001, 0.02))
        try:
            del borrowed
            while not came:
                pass
        except _Interruption:
            came = False
        assert not came, "a deleter swallowed what a signal's handler raised"
        assert total.item() == 5 * SIZE
    finally:
        signal.signal(signal.SIGALRM, before)
        connection.send(None)
        lender.join()


def _fill_up(kept: list[torch.Tensor], bytes: int) -> None:
    """Allocate until the memory is exhausted."""
    try:
        while True:
            kept.append(torch.empty(bytes, dtype=torch.uint8, device=DEVICE))
    except torch.OutOfMemoryError:
        pass


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    """Limit this process to 64 MiB of device memory."""
    backend.empty_cache()
    backend.set_per_process_memory_fraction(64 * 2**20 / backend.mem_get_info()[1])
    try:
        yield
    finally:
        backend.set_per_process_memory_fraction(1.0)


def pools(draw: Random) -> None:
    """Threads that run out of memory in one private pool, which is freed with its last owner."""
    if not hasattr(backend, "MemPool"):
        return
    sizes = [draw.choice([1, 3, 5]) * 2**20 for _ in range(4)]
    with _little_memory():
        for _ in range(3):
            pool = backend.MemPool()

            def work(bytes: int, pool: Any = pool) -> None:
                with backend.use_mem_pool(pool):
                    for _ in range(3):
                        _fill_up([], bytes)

            threads = [threading.Thread(target=work, args=(bytes,)) for bytes in sizes]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            del pool, work, threads
            gc.collect()
            backend.empty_cache()
            assert backend.memory_reserved() < 32 * 2**20


def handlers_without_memory(draw: Random) -> None:
    """Signals come while the cache releases memory, and their handler allocates."""
    seen: list[float] = []

    def handle(*_: object) -> None:
        with contextlib.suppress(torch.OutOfMemoryError):
            seen.append(_filled(2, 0, 1 << 22).sum().item())

    ones = torch.ones(512, 512, device=DEVICE)
    product = torch.empty_like(ones)
    with _little_memory(), _signals(handle, draw.uniform(0.0005, 0.003)):
        for _ in range(3):
            for _ in range(60):
                torch.mm(ones, ones, out=product)
            _fill_up([], 12 * 2**20)  # cached, but pending work uses it
            _fill_up([], 14 * 2**20)  # the cache releases it when that work is done
    assert set(seen) <= {2.0 * (1 << 22)}


PROGRAMS: tuple[Callable[[Random], None], ...] = (
    streams, memory, copies, growth, graphs, failures, handlers, pools,
    handlers_without_memory,
)  # fmt: skip


DEAR = 10
"""One of so many seeds also runs the program that starts a process."""


def run(seed: int) -> None:
    """Run all programs in an order that depends on the seed."""
    draw = random.Random(seed)
    programs = PROGRAMS if seed % DEAR else (*PROGRAMS, interruptions)
    for program in draw.sample(programs, len(programs)):
        try:
            program(random.Random(seed))
        except Exception as error:
            raise AssertionError(f"{program.__name__} of seed {seed}: {error!r}") from error
