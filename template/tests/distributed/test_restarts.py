"""Training under ``torchrun`` that is killed and restarted, with the losses of one process."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch
from distributed.torchrun import EVERY, STEPS, Run, on_one_machine, torchrun, training
from support import example, needs

pytestmark = [needs(torch.float32), pytest.mark.full]


@pytest.fixture(scope="module")
def expected() -> dict[int, float]:
    """Losses by the number of steps, of one process on the CPU without an interruption."""
    with redirect_stdout(StringIO()):
        losses = example("gpt").train("cpu", STEPS)
    return {step: losses[step - 1] for step in range(EVERY, STEPS + 1, EVERY)}


def check(output: str, expected: dict[int, float]) -> int:
    """Compare the losses of the last start, and return the step that it began with."""
    last = output.rpartition("go on from step ")[2]
    first = int(last.split()[0])
    losses = {int(step): float(loss) for step, loss in re.findall(r"step +(\d+): loss (\S+)", last)}
    assert losses == pytest.approx(
        {step: loss for step, loss in expected.items() if step > first}, rel=1e-3
    )
    return first


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2)])
def test_killed_training_resumes_on_another_number_of_processes(
    tmp_path: Path, expected: dict[int, float], before: int, after: int
) -> None:
    with torchrun(*on_one_machine(before, tmp_path)) as run:
        run.until("step  20:")
        assert len(run.workers()) == before
        run.kill()
    with torchrun(*on_one_machine(after, tmp_path)) as run:
        output = run.end()
    assert f"{after} processes" in output
    assert 15 <= check(output, expected) < STEPS


def test_a_killed_worker_is_restarted(tmp_path: Path, expected: dict[int, float]) -> None:
    # Otherwise the store has addresses of killed processes.
    settings = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    words = on_one_machine(2, tmp_path, "--max-restarts", "1")
    with torchrun(*words, settings=settings) as run:
        run.until("step  20:")
        os.kill(run.workers()[1], signal.SIGKILL)
        output = run.end()
    assert output.count("go on from step") == 2
    assert 15 <= check(output, expected) < STEPS


def meeting(address: str, port: int) -> list[str]:
    """Return the arguments of one of two agents, with one process each."""
    place = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{address}:{port}", "--rdzv-id", "one"]
    return ["--nnodes", "2", "--nproc-per-node", "1", *place]


def ends(runs: list[Run]) -> str:
    """Return the output of the agent with rank 0, when all have ended."""
    (output,) = [output for output in [run.end() for run in runs] if "go on from step" in output]
    return output


def test_two_agents_train_together(tmp_path: Path, expected: dict[int, float]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [*meeting("127.0.0.1", port), "--local-addr", "127.0.0.1", *training(tmp_path)]
    with ExitStack() as stack:
        runs = [stack.enter_context(torchrun(*words)) for _ in range(2)]
        assert check(ends(runs), expected) == 0


@contextmanager
def two_networks() -> Iterator[dict[str, str]]:
    """Create two connected network namespaces; yield the address of each by name."""
    addresses = {f"torch{os.getpid() % 10000}{end}": f"10.213.7.{end}" for end in (1, 2)}
    one, two = addresses
    commands = [f"ip netns add {name}" for name in addresses]
    commands.append(f"ip link add {one} netns {one} type veth peer name {two} netns {two}")
    for name, address in addresses.items():
        commands.append(f"ip -n {name} address add {address}/24 dev {name}")
        commands.extend(f"ip -n {name} link set {device} up" for device in ("lo", name))
    try:
        for command in commands:
            try:
                subprocess.run(command.split(), check=True, capture_output=True, text=True)
            except (OSError, subprocess.CalledProcessError) as error:
                reason = getattr(error, "stderr", "") or str(error)
                pytest.skip(f"network namespaces need root: '{command}' says {reason.strip()}")
        yield addresses
    finally:
        for name in addresses:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def test_two_agents_in_two_network_namespaces_train_together(
    tmp_path: Path, expected: dict[int, float]
) -> None:
    with two_networks() as addresses, ExitStack() as stack:
        runs = []
        first = min(addresses.values())
        for name, address in addresses.items():
            words = [*meeting(first, 29400), "--local-addr", address]
            words += ["--rdzv-conf", f"is_host={address == first}"]
            run = torchrun(
                *words,
                *training(tmp_path),
                before=["ip", "netns", "exec", name],
                settings={"GLOO_SOCKET_IFNAME": name},
            )
            runs.append(stack.enter_context(run))
        assert check(ends(runs), expected) == 0
