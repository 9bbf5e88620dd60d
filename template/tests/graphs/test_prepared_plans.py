"""A warmed-up function compiles nothing more, and a graph keeps the plans that it launches."""

from __future__ import annotations

import pytest
from backend import DEVICE, ENV_PREFIX
from support import is_simulator, run_python


def test_no_kernel_is_compiled_after_warm_up() -> None:
    if not is_simulator():
        pytest.skip("needs a setting that only the simulator has")
    code = f"""
        import torch
        backend = torch.{DEVICE}
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()).to("{DEVICE}")
        x = torch.randn(4, 8).to("{DEVICE}")
        expected = model.cpu()(x.cpu())
        model.to("{DEVICE}")
        backend.warm_up(model, x)
        backend.reset_plan_stats()
        result = model(x)
        stats = backend.plan_stats()
        assert stats["misses"] == 0 and stats["hits"] > 1, stats
        torch.testing.assert_close(result.cpu(), expected)
        graph = backend.Graph()
        with backend.graph(graph):
            y = model(x)
        backend.clear_plans()
        assert backend.plan_stats()["releases"] == 0
        for _ in range(3):
            graph.replay()
        torch.testing.assert_close(y.cpu(), expected)
        del graph
        backend.synchronize()
        backend.clear_plans()
        stats = backend.plan_stats()
        assert stats["releases"] > 0 and stats["waiting"] == 0, stats
    """
    run_python(code, {f"{ENV_PREFIX}_SIMULATOR_COMPILE_MS": "1"})
