"""Plans: the device reuses what it has compiled, in every step."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import has_function, is_simulator, run_python

# With this setting, the simulator compiles kernels and has plans.
COMPILES = {f"{ENV_PREFIX}_SIMULATOR_COMPILE_MS": "5"}

on_the_simulator = pytest.mark.skipif(
    not is_simulator(), reason="needs a setting that only the simulator has"
)


def test_a_device_without_release_plan_has_no_plans() -> None:
    if has_function("plans", "release_plan") and not is_simulator():
        pytest.skip("the device may have some")
    run_python(
        f"""
        import torch
        x = torch.ones(4, device="{DEVICE}")
        assert (x + x).tolist() == [2] * 4
        stats = torch.{DEVICE}.plan_stats()
        assert stats.pop("limit") == 4096
        assert set(stats.values()) == {{0}}, stats
        """,
        {f"{ENV_PREFIX}_SIMULATOR_COMPILE_MS": ""},
    )


@on_the_simulator
def test_only_the_first_step_of_a_training_compiles() -> None:
    code = f"""
        import time, torch
        backend = torch.{DEVICE}
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4)
        ).to("{DEVICE}")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        batch = torch.randn(32, 8).to("{DEVICE}")
        target = torch.randint(4, (32,)).to("{DEVICE}")
        losses, misses, seconds = [], [], []
        for step in range(5):
            start = time.perf_counter()
            for group in optimizer.param_groups:
                group["lr"] = 1e-2 / (step + 1)
            loss = torch.nn.functional.cross_entropy(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            seconds.append(time.perf_counter() - start)
            misses.append(backend.plan_stats()["misses"])
        assert losses[-1] < losses[0]
        assert misses[0] > 10 and misses[2:] == [misses[-1]] * 3, misses
        assert seconds[0] > 0.005 * misses[0] > seconds[4], (seconds, misses)
        assert backend.plan_stats()["evictions"] == 0
    """
    run_python(code, COMPILES)


@on_the_simulator
def test_plans_are_created_and_released_on_two_devices_and_threads() -> None:
    code = f"""
        import threading, torch
        backend = torch.{DEVICE}
        backend.set_plan_limit(3)
        failures = []

        def work(device):
            try:
                x = torch.zeros(64, device=device)
                with torch.Stream(device) as stream:
                    backend.current_stream(x.device).wait_stream(backend.default_stream(x.device))
                    for size in range(1, 40):
                        x[:size] += 1
                        x[:size].mul_(1)
                    stream.synchronize()
                expected = torch.tensor([39 - max(i - 0, 0) if i < 39 else 0 for i in range(64)])
                assert x.cpu().equal(expected.float()), x
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(f"{DEVICE}:{{i % 2}}",)) for i in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not failures, failures
        for device in range(2):
            backend.synchronize(device)
            backend.clear_plans(device)
            stats = backend.plan_stats(device)
            assert stats["kinds"] == stats["waiting"] == 0, stats
            assert stats["evictions"] >= stats["releases"] > 39, stats
            backend.reset_plan_stats(device)
            assert backend.plan_stats(device)["releases"] == 0
    """
    run_python(code, {**COMPILES, f"{ENV_PREFIX}_SIMULATOR_COMPILE_MS": "0"})


@on_the_simulator
def test_attention_probes_the_device_once() -> None:
    code = f"""
        import torch
        backend = torch.{DEVICE}
        q = torch.randn(2, 3, 16, 8).to("{DEVICE}")
        for _ in range(4):
            torch.nn.functional.scaled_dot_product_attention(q, q, q)
        stats = backend.plan_stats()
        assert stats["answers"] >= 3, stats
        assert stats["hits"] >= 3 and stats["misses"] < 8, stats
    """
    run_python(code, COMPILES)


@on_the_simulator
def test_another_process_compiles_nothing(tmp_path: Path) -> None:
    code = f"""
        import time, torch
        torch.{DEVICE}.set_cache_folder({str(tmp_path / "kernels")!r})
        x = torch.ones(4, device="{DEVICE}")
        start = time.perf_counter()
        x = (x + x).exp().sum()
        print(time.perf_counter() - start)
    """
    slow = {f"{ENV_PREFIX}_SIMULATOR_COMPILE_MS": "50"}
    first, second = (float(run_python(code, slow).stdout) for _ in range(2))
    assert first >= 0.15 > second


def test_settings_of_plans_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="from 0 on, not -1"):
        backend.set_plan_limit(-1)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        backend.set_cache_folder(tmp_path / "file")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(PermissionError, match="others can write to it"):
        backend.set_cache_folder(tmp_path / "shared")
    if has_function("plans", "set_cache_folder"):
        return
    with pytest.raises(NotImplementedError, match="set_cache_folder"):
        backend.set_cache_folder(tmp_path)


def test_an_empty_path_disables_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    set_folder = Mock()
    monkeypatch.setattr(backend._C, "set_cache_folder", set_folder)
    for nothing in (None, ""):
        backend.set_cache_folder(nothing)
        set_folder.assert_called_with("")


def test_statistics_are_those_of_the_current_or_given_device() -> None:
    assert backend.plan_stats() == backend.plan_stats(0) == backend.plan_stats(f"{DEVICE}:0")
    with pytest.raises(ValueError, match="cpu"):
        backend.plan_stats(torch.device("cpu"))
