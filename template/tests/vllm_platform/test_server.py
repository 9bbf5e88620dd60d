"""vLLM's server on this device: a request, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from backend import DEVICE

pytestmark = pytest.mark.ecosystem("vllm", "transformers")

Server = subprocess.Popen[str]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(port: int, path: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        text = answer.read()
    return json.loads(text) if text else None


@pytest.fixture(scope="module")
def server(
    checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, int, Path]]:
    """Return a server, its port and its log."""
    port, log = free_port(), tmp_path_factory.mktemp("server") / "log"
    options = {
        "--served-model-name": "tiny",
        "--port": port,
        "--dtype": "float32",
        "--max-model-len": 256,
        "--shutdown-timeout": 20,
        "--kv-cache-memory-bytes": 1 << 27,
    }
    words = [str(word) for option in options.items() for word in option]
    program = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command = [*program, "--model", str(checkpoint("llama")), *words]
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, "--enforce-eager"],
            env=os.environ | {"VLLM_NO_USAGE_STATS": "1"},
            stdout=file,
            stderr=file,
            text=True,
        )
    try:
        for _ in range(600):
            assert process.poll() is None, log.read_text()[-4000:]
            try:
                ask(port, "/health")
                break
            except OSError:
                time.sleep(0.5)
        yield process, port, log
    finally:
        process.kill()


def test_the_server_completes_a_prompt_and_stops_after_ctrl_c(
    server: tuple[Server, int, Path],
) -> None:
    process, port, log = server
    body = {"model": "tiny", "prompt": "Once", "max_tokens": 8, "temperature": 0}
    first, second = (ask(port, "/v1/completions", body) for _ in range(2))
    assert first["usage"]["completion_tokens"] == 8
    assert first["choices"][0]["text"] == second["choices"][0]["text"]
    assert f"device_config={DEVICE}" in log.read_text()
    # After Ctrl-C all processes end by themselves, without an error.
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) in (0, -signal.SIGINT, 128 + signal.SIGINT)
    assert "Traceback" not in log.read_text(), log.read_text()[-4000:]
