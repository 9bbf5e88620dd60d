"""Signal handlers that run while a graph is reset."""

from __future__ import annotations

import torch
from backend import DEVICE
from support import needs, run_python

pytestmark = needs(torch.float32)


def test_a_signal_handler_can_use_a_graph_during_reset() -> None:
    run_python(
        f"""
        import os, signal, threading, torch
        from support import keep_busy
        backend = torch.{DEVICE}
        graph = backend.Graph()
        keep_busy(seconds=0.01)  # measures before the capture
        with backend.graph(graph):
            keep_busy(seconds=0.5)
        said = []
        def handle(*_):
            try:
                graph.replay()
            except RuntimeError as error:
                said.append(str(error))
        signal.signal(signal.SIGUSR1, handle)
        for _ in range(4):
            graph.replay()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        graph.reset()
        backend.synchronize()
        while not said:
            pass
        assert "has no capture" in said[0], said
        """
    )
