"""Operations that cannot be captured raise errors that name them, and the device stays usable."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, backend
from support import needs, needs_two_devices, run_python
from torch.optim.optimizer import _global_optimizer_pre_hooks

pytestmark = needs(torch.float32, torch.int64)

Operation = Callable[[torch.Tensor], object]

REFUSED: dict[str, tuple[Operation, str]] = {
    "item": (lambda x: x.sum().item(), "aten::_local_scalar_dense waits for the device"),
    "cpu": (lambda x: x.cpu(), "aten::copy_ waits for the device"),
    "from the host": (lambda x: x.copy_(torch.ones(4)), "aten::copy_ waits for the device"),
    "synchronize": (lambda x: backend.synchronize(), "synchronize waits for the device"),
    "a stream's synchronize": (
        lambda x: backend.current_stream().synchronize(),
        "synchronize waits for the device",
    ),
    "a stream's query": (lambda x: backend.current_stream().query(), "query_stream"),
    "an event's synchronize": (
        lambda x: backend.current_stream().record_event().synchronize(),
        "query_event",
    ),
    "the CPU": (
        torch.special.airy_ai,
        "aten::special_airy_ai.out runs on the CPU, as",
    ),
    "empty_cache": (lambda x: backend.empty_cache(), "cache of .* cannot be emptied"),
    "another capture": (lambda x: backend.Graph().capture_begin(), "another capture is active"),
    "a step that the host counts": (
        lambda x: torch.optim.Adam([x.requires_grad_()]).step(),
        "Adam counts its steps on the host",
    ),
}


@pytest.mark.parametrize(("operation", "text"), REFUSED.values(), ids=REFUSED)
def test_the_error_names_the_operation_that_cannot_be_captured(
    operation: Operation, text: str
) -> None:
    x = torch.ones(4, device=DEVICE)
    graph = backend.Graph()
    with pytest.raises(RuntimeError, match=text), backend.graph(graph):
        operation(x.detach() * 2)
    assert not backend.is_current_stream_capturing()
    assert (x + 1).tolist() == [2] * 4
    with backend.graph(graph):
        y = x + 2
    graph.replay()
    assert y.tolist() == [3] * 4


@needs_two_devices
@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 0)])
def test_a_copy_between_devices_is_refused(source: int, target: int) -> None:
    there = torch.full((4,), 3.0, device=f"{DEVICE}:{source}")
    here = torch.ones(4, device=f"{DEVICE}:{target}")
    refused = pytest.raises(RuntimeError, match="aten::copy_ uses two devices, which cannot")
    with refused, backend.graph(backend.Graph()):
        here.copy_(there)
    here.copy_(there)
    assert here.tolist() == [3] * 4


def test_a_caught_error_invalidates_the_capture() -> None:
    x = torch.ones(4, device=DEVICE)
    refused = pytest.raises(RuntimeError, match="broken: aten::_local_scalar_dense waits")
    with refused, backend.graph(backend.Graph()):
        with pytest.raises(RuntimeError):
            x.sum().item()
        x + 1


def test_other_exceptions_in_a_capture_are_raised_unchanged() -> None:
    with pytest.raises(KeyError), backend.graph(backend.Graph()):
        raise KeyError
    assert not backend.is_current_stream_capturing()


def test_the_default_stream_is_not_captured() -> None:
    with pytest.raises(RuntimeError, match=r"default stream .* torch\..*\.graph"):
        backend.Graph().capture_begin()


def test_methods_of_a_graph_without_a_capture_raise() -> None:
    graph = backend.Graph()
    for operation in (graph.replay, graph.instantiate, graph.pool, graph.capture_end):
        with pytest.raises(RuntimeError, match="capture"):
            operation()
    graph.reset()


def test_a_second_capture_of_a_graph_is_refused() -> None:
    x = torch.ones(4, device=DEVICE)
    graph = backend.Graph()
    with backend.graph(graph):
        x + 1
    with pytest.raises(RuntimeError, match="has a capture already"), backend.graph(graph):
        x + 1
    assert backend.current_stream() == backend.default_stream()


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="global, thread_local, relaxed"):
        backend.Graph().capture_begin(capture_error_mode="strict")


@pytest.mark.parametrize("option", ["enable_annotations", "check_input_liveness"])
def test_options_for_cuda_are_refused(option: str) -> None:
    with backend.graph(backend.Graph(), **{option: False}):
        pass
    with (
        pytest.raises(NotImplementedError, match=f"{option}.* not supported"),
        backend.graph(backend.Graph(), **{option: True}),
    ):
        pass


def test_deleting_a_graph_ends_its_capture() -> None:
    with backend.stream(backend.Stream()):
        x = torch.ones(4, device=DEVICE)
        graph = backend.Graph()
        graph.capture_begin()
        x.add_(1)
        del graph
        assert not backend.is_current_stream_capturing()
        assert x.tolist() == [1] * 4


def test_running_out_of_memory_ends_only_the_capture() -> None:
    free, _ = backend.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError), backend.graph(backend.Graph()):
        torch.empty(2 * free, dtype=torch.uint8, device=DEVICE)
    assert torch.ones(4, device=DEVICE).sum().item() == 4


def test_creating_a_graph_does_not_initialize_the_device() -> None:
    code = f"""
        import torch
        graph = torch.{DEVICE}.Graph()
        torch.{DEVICE}.graph(graph)
        assert not torch.{DEVICE}.is_current_stream_capturing()
        assert not torch.{DEVICE}.is_initialized()
    """
    run_python(code)


@needs_two_devices
def test_a_stream_of_another_device_cannot_join_a_capture() -> None:
    """Memory of that stream would not come from the pool, and its random numbers would repeat."""
    stream, other = backend.Stream(0), backend.Stream(1)
    graph = backend.Graph()
    with backend.stream(stream):
        graph.capture_begin()
        event = stream.record_event()
        with pytest.raises(
            RuntimeError, match="a stream of another device cannot wait for an event of a capture"
        ):
            other.wait_event(event)
        graph.reset()
    other.synchronize()


@pytest.mark.parametrize("end", ["capture_end", "reset", "__del__"])
def test_the_optimizer_hook_is_removed_after_the_capture(end: str) -> None:
    before = set(_global_optimizer_pre_hooks)
    graph = backend.Graph()
    with backend.stream(backend.Stream()):
        graph.capture_begin()
        assert set(_global_optimizer_pre_hooks) > before
        if end != "__del__":
            getattr(graph, end)()
        del graph
        gc.collect()
    assert set(_global_optimizer_pre_hooks) == before


def test_a_program_can_exit_during_a_capture() -> None:
    ended = run_python(
        f"""
        import torch
        backend = torch.{DEVICE}
        x = torch.ones(3, device="{DEVICE}")
        graph = backend.Graph()
        backend.set_stream(backend.Stream())
        graph.capture_begin()
        x + 1
        """
    )
    assert ended.stderr == ""
