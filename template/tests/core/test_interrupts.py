"""Ctrl-C while the device works interrupts every wait, long before the work is done."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
from support import needs, run_python

pytestmark = needs(torch.float32)

WAITS = {
    "item": "x[0, 0].item()",
    "cpu": "x.cpu()",
    "copy_": "torch.empty(SIZE, SIZE).copy_(x)",
    "to": "torch.ones(1 << 16).to(x.device)",
    "tolist": "x.tolist()",
    "stream": "backend.current_stream().synchronize()",
    "event": "event.synchronize()",
    "device": "backend.synchronize()",
    "accelerator": "torch.accelerator.synchronize()",
    "empty_cache": "backend.empty_cache()",
    "full queue": "for _ in range(1000): torch._foreach_mul([small] * 20_000, 1.0)",
}
QUICK = ("item", "event", "device", "full queue")
"""One for each function in which the host waits."""

# The queue has much work when the signal comes. If the wait handled the signal only when the queue
# is empty, the stream would be idle. How much is enough depends on the device.
CODE = """
import os, signal, sys, threading, time, torch
backend = torch.DEVICE

def seconds(size):
    x = torch.eye(size, device="DEVICE")
    backend.synchronize()
    begin = time.perf_counter()
    x @ x
    backend.synchronize()
    return time.perf_counter() - begin

SIZE = 256
while SIZE < 2048 and seconds(SIZE) < 0.1:
    SIZE *= 2
x = torch.ones(SIZE, SIZE, device="DEVICE")
free = torch.ones(1 << 20, device="DEVICE")
small = torch.ones(1, device="DEVICE")
weight = torch.eye(SIZE, device="DEVICE")
backend.synchronize()
begin = time.perf_counter()
for _ in range(200):
    x = x @ weight
    if time.perf_counter() - begin > 2:
        break  # the queue is full
event = backend.Event()
event.record()
del free
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    WAIT
except KeyboardInterrupt:
    print("idle" if event.query() else "busy")
END
"""


def code(wait: str, end: str = "") -> str:
    return CODE.replace("DEVICE", DEVICE).replace("WAIT", WAITS[wait]).replace("END", end)


@pytest.mark.parametrize(
    "wait",
    [pytest.param(wait, marks=[] if wait in QUICK else [pytest.mark.full]) for wait in WAITS],
)
def test_an_interrupt_ends_a_wait(wait: str) -> None:
    # If the queue has no limit, only the end of the process would wait for it.
    end = "sys.stdout.flush(); os._exit(0)" if wait == "full queue" else ""
    ended = run_python(code(wait, end))
    assert ended.stdout == "busy\n"


def test_the_process_that_was_interrupted_ends_as_python_does() -> None:
    ended = run_python(code("item", "raise KeyboardInterrupt"), check=False)
    assert ended.returncode in (-2, 130)
    assert ended.stderr.rstrip().endswith("KeyboardInterrupt")


def test_other_threads_run_while_one_waits() -> None:
    counting = """
import torch, threading, time
from support import keep_busy
backend = torch.DEVICE
free = torch.empty(1 << 24, device="DEVICE")
x = torch.ones(1, device="DEVICE")
keep_busy(seconds=0.5)
x += 1
del free  # a segment that is released once the work is done
ticks, done = 0, False

def count():
    global ticks
    while not done:
        ticks += 1
        time.sleep(0.001)

thread = threading.Thread(target=count)
thread.start()
WAIT
done = True
thread.join()
assert ticks > 10, ticks
""".replace("DEVICE", DEVICE)
    for wait in ("backend.synchronize()", "x.cpu()", "backend.empty_cache()"):
        run_python(counting.replace("WAIT", wait))


def test_a_wait_continues_after_a_signal_handler_returns() -> None:
    run_python(
        f"""
        import signal, torch
        from support import keep_busy
        calls = []
        signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
        x = torch.ones(1024, device="{DEVICE}")
        keep_busy(seconds=0.01)
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        keep_busy(seconds=0.5)
        total = x.sum().item()
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert calls and total == 1024, (calls, total)
        """
    )


# The layer `faults` delays the work by a second. Most of the memory is in the cache.
LATE = f"""
import gc, os, signal, threading, torch
backend, faults = torch.{DEVICE}, torch.{DEVICE}._C.faults
backend.set_per_process_memory_fraction((64 << 20) / backend.mem_get_info()[1])
half = 33 << 20
faults.set_delay(1_000_000, 1_000_000, seed=1)
cached = torch.empty(half, dtype=torch.uint8, device="{DEVICE}")
cached.fill_(1)
signalled = []
signal.signal(signal.SIGUSR1, lambda *_: signalled.append(handle()))
timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
"""
FAULTS = {f"{ENV_PREFIX}_DEVICE_LAYERS": "faults"}


def test_a_signal_handler_can_allocate_during_a_wait_for_memory() -> None:
    run_python(
        LATE
        + f"""
def handle():
    return torch.empty(half + (4 << 20), dtype=torch.uint8, device="{DEVICE}").numel()
del cached
timer.start()
larger = torch.empty(half + (8 << 20), dtype=torch.uint8, device="{DEVICE}")
assert signalled == [half + (4 << 20)], signalled
""",
        FAULTS,
    )


def test_signal_handlers_do_not_run_in_a_deleter() -> None:
    """Freeing a tensor enqueues an event, which waits if the queue is full."""
    ended = run_python(
        f"""
        import os, signal, threading, torch
        from support import keep_busy
        backend = torch.{DEVICE}
        stream = backend.Stream()
        small = torch.ones(1, device="{DEVICE}")
        shared = torch.ones(1 << 20, device="{DEVICE}")
        keep_busy(stream, 3)
        shared.record_stream(stream)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            with backend.stream(stream):
                while True:
                    small.add_(1)
                    del shared
                    shared = torch.ones(1 << 20, device="{DEVICE}")
                    shared.record_stream(stream)
        except KeyboardInterrupt:
            print("interrupted")
        backend.synchronize()
        """
    )
    assert ended.stdout == "interrupted\n"
    assert ended.stderr == ""


def test_an_interrupt_while_a_pool_is_dropped_is_raised_afterwards() -> None:
    """The destructor waits for work that uses the memory, and cannot raise."""
    ended = run_python(
        f"""
        import os, signal, threading, time, torch
        from support import keep_busy
        backend = torch.{DEVICE}
        pool = backend.MemPool()
        with backend.use_mem_pool(pool):
            keep_busy(seconds=1.5)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            del pool
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert ended.stdout == "interrupted\n"
