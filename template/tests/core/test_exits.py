"""A process can end while its devices are busy, and keeps its exit status."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from support import needs, run_python

PROGRAM = """
import threading
import torch

devices = range(torch.accelerator.device_count())
streams = [torch.Stream(f"DEVICE:{i}") for i in devices for _ in range(3)]
kept = []
for stream in streams:
    with stream:
        kept.append(torch.ones(1 << 16, device=stream.device))
pinned = torch.ones(1 << 16).pin_memory()
leaf = torch.ones(3, device="DEVICE", requires_grad=True)
(leaf * 2).sum().backward()


def again(stream):
    # A Stream object of PyTorch 2.10 is entered by one thread at a time.
    index, kind = stream.device_index, stream.device_type
    return torch.Stream(stream_id=stream.stream_id, device_index=index, device_type=kind)


def work(rounds):
    for i in range(rounds):
        with again(streams[i % len(streams)]) as stream:
            own = kept[i % len(streams)]
            own.mul_(1.5).sin_()
            copied = pinned.to(stream.device, non_blocking=True)
            event = stream.record_event()
            kept.append(copied[:7] + own[:7])


def work_and_stay():
    work(40)
    done.release()
    threading.Event().wait()


# Each thread has left PyTorch when the interpreter ends. Otherwise the process would abort, on the
# CPU as well: https://github.com/pytorch/pytorch/issues/38228
done = threading.Semaphore(0)
for _ in range(2):
    threading.Thread(target=work_and_stay, daemon=True).start()
work(40)
done.acquire()
done.acquire()
"""
ENDS = {"": 0, "raise SystemExit(3)": 3, "import os; os._exit(4)": 4}
"""The statuses of processes, by their last lines."""


@pytest.mark.parametrize(
    "end", [*ENDS, *(pytest.param("", marks=pytest.mark.full) for _ in range(100))]
)
def test_a_process_ends_while_its_devices_work(end: str) -> None:
    done = run_python(PROGRAM.replace("DEVICE", DEVICE) + end, check=False)
    assert (done.returncode, done.stderr) == (ENDS[end], "")


@needs(torch.float32)
def test_waits_end_although_another_thread_goes_on_enqueueing() -> None:
    """At the exit, daemon threads may still enqueue work.

    The exit status is not checked, because the interpreter stops the threads at any point.
    """
    result = run_python(
        f"""
        import threading
        import torch

        model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4))).to("{DEVICE}")

        def train():
            while True:
                model(torch.ones(256, 256, device="{DEVICE}")).sum().backward()

        for _ in range(3):
            threading.Thread(target=train, daemon=True).start()
        for _ in range(5):
            torch.{DEVICE}.synchronize()
            torch.ones(2, device="{DEVICE}").cpu()
            torch.{DEVICE}.current_stream().synchronize()
        print("waited", flush=True)
        """,
        check=False,
    )
    assert result.stdout == "waited\n"
