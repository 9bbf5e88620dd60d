"""Functions that ranks run in the tests of order, groups and failures."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from backend import DEVICE, ENV_PREFIX, backend


def raised(function: Callable[[], Any]) -> str:
    """Return the type and the message of the exception of ``function``, or an empty string."""
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def chosen(rank: int, size: int) -> list[str]:
    """Return the backend of the default group, and the backends of a group with two."""
    both = dist.new_group(backend=f"cpu:gloo,{DEVICE}:{DEVICE}ccl")
    assert both is not None
    whole = dist.group.WORLD
    assert whole is not None
    asked = [(whole, DEVICE), (both, "cpu"), (both, DEVICE)]
    names = [group._get_backend(torch.device(device)).name() for group, device in asked]
    dist.destroy_process_group(both)
    return names


def wait_without_partner(rank: int, size: int) -> list[float]:
    """Rank 1 joins the collective only after rank 0's ``wait()`` has returned."""
    store = dist.distributed_c10d._get_default_store()
    tensor = torch.full((1000,), rank + 1.0, device=DEVICE)
    if rank == 1:
        store.wait(["returned"], timedelta(seconds=50))
    work = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    if rank == 0:
        assert not work.is_completed()
        work.wait()
        doubled = tensor * 2
        assert not work.is_completed()
        store.set("returned", "1")
    else:
        work.wait()
        doubled = tensor * 2
    return sorted(set(doubled.tolist()))


def on_side_streams(rank: int, size: int) -> list[bool]:
    """Reduce new tensors of side streams, synchronized by ``wait()`` only, and free each tensor at
    once.
    """
    results = []
    streams = [torch.Stream(DEVICE) for _ in range(3)]
    for step in range(30):
        with streams[step % 3]:
            tensor = torch.ones(200_000, device=DEVICE)
            for _ in range(4):
                tensor = tensor + rank
            work = dist.all_reduce(tensor, async_op=True)
            assert work is not None
            work.wait()
            total = tensor.sum()
            del tensor, work
            # Reuses the memory, which the collective may still read.
            torch.full((200_000,), -1.0, device=DEVICE)
            results.append(total)
    expected = 200_000.0 * sum(1 + 4 * other for other in range(size))
    backend.synchronize()
    return [result.item() == expected for result in results]


def barriers_on_own_devices(rank: int, size: int) -> float:
    """Each rank has a device, and device 0 is the current one of all. The first barrier comes before
    the ranks have used a device.
    """
    group = dist.new_group()
    tensor = torch.ones(200_000, device=f"{DEVICE}:{rank % backend.device_count()}")
    dist.barrier(group)
    dist.all_reduce(tensor, group=group)
    dist.barrier(group)
    return tensor[-1].item()


def on_two_devices(rank: int, size: int) -> list[float]:
    """Reduce on one device after other work, broadcast on a second at once, and wait for both."""
    backend.set_device(0)
    results = []
    for step in range(20):
        first, second = (torch.ones(50_000, device=f"{DEVICE}:{index}") for index in (0, 1))
        for _ in range(5):
            first = first + rank
        works = [
            dist.all_reduce(first, async_op=True),
            dist.broadcast(second.mul_(rank + step), 1, async_op=True),
        ]
        dist.barrier()
        for work in works:
            assert work is not None
            work.wait()
        results += [first[-1].item() - 5, second[-1].item() - step]
    return sorted(set(results))


def future(rank: int, size: int) -> list[float]:
    """Continue from the future of the work, as communication hooks do."""
    tensor = torch.full((3,), rank + 1.0, device=DEVICE)
    work = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    halved = work.get_future().then(lambda done: done.value()[0] / 2).wait()
    return [*halved.tolist(), *work.result()[0].tolist()]


def split(rank: int, size: int) -> list[Any]:
    """Reduce in groups split from the default group, and in groups split from these."""
    whole = dist.group.WORLD
    assert whole is not None
    before = whole.bound_device_id
    whole.bound_device_id = torch.device(DEVICE, 0)
    try:
        both = dist.split_group(whole, [list(range(size))], group_desc="both")
        single = dist.split_group(both, [[other] for other in range(size)])
    finally:
        whole.bound_device_id = before
    assert both is not None and single is not None
    sums = []
    for group in (both, single):
        tensor = torch.full((2,), rank + 1.0, device=DEVICE)
        dist.all_reduce(tensor, group=group)
        sums.append(tensor.tolist())
    names = [group._get_backend(torch.device(DEVICE)).name() for group in (both, single)]
    members = [dist.get_process_group_ranks(group) for group in (both, single)]
    return [sums, names, members]


def profiled(rank: int, size: int) -> list[tuple[str, list[list[int]]]]:
    """Return the names and shapes of the backend's events in a profile."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        dist.all_reduce(torch.ones(2, 3, device=DEVICE))
        dist.broadcast(torch.ones(4, device=DEVICE), 0)
        backend.synchronize()
    return [
        (event.name, event.input_shapes)
        for event in profiler.events()
        if event.name.startswith(f"{DEVICE}ccl:")
    ]


def subgroups(rank: int, size: int) -> list[Any]:
    """Reduce in groups of one rank each and in a group of all ranks, and gather objects."""
    singles = [dist.new_group([other]) for other in range(size)]
    alone = torch.full((2,), rank + 1.0, device=DEVICE)
    dist.all_reduce(alone, group=singles[rank])
    everyone = dist.new_group(list(range(size)))
    together = torch.ones(2, device=DEVICE)
    dist.all_reduce(together, group=everyone)
    objects: list[Any] = [None] * size
    dist.all_gather_object(objects, {"rank": rank}, group=everyone)
    dist.destroy_process_group(everyone)
    return [alone.tolist(), together.tolist(), objects]


def wrong_arguments(rank: int, size: int) -> list[str]:
    """Return the exceptions of wrong calls, in which no rank waits for another."""

    def ones(*shape: int, **options: Any) -> torch.Tensor:
        return torch.ones(*shape, **{"device": DEVICE, **options})

    whole = dist.group.WORLD
    assert whole is not None
    return [
        raised(call)
        for call in (
            lambda: dist.all_gather([ones(2)], ones(2)),
            lambda: dist.all_gather([ones(3), ones(3)], ones(2)),
            lambda: dist.all_gather_into_tensor(ones(3), ones(2)),
            lambda: dist.reduce_scatter_tensor(ones(3), ones(2)),
            lambda: dist.all_to_all_single(ones(3), ones(3)),
            lambda: dist.all_to_all_single(ones(3), ones(3), [1, 1], [1, 2]),
            lambda: dist.isend(ones(2, 3).T, 1 - rank),
            lambda: whole.broadcast(ones(2), 5).wait(),
            lambda: dist.all_reduce(ones(2), dist.ReduceOp.BAND),
            lambda: dist.all_reduce(ones(2, dtype=torch.int32), dist.ReduceOp.AVG),
            lambda: dist.all_gather([ones(2, device="cpu")] * size, ones(2)),
        )
    ]


def time_out_without_partner(rank: int, size: int, prefix: str) -> list[Any]:
    """Only rank 0 reduces, in a group with a timeout of a second."""
    os.environ[f"{ENV_PREFIX}_COLLECTIVE_DUMP"] = prefix
    brief = dist.new_group(timeout=timedelta(seconds=1), group_desc="brief")
    answer: list[Any] = []
    if rank == 0:
        tensor = torch.ones(10, device=DEVICE)
        work = dist.all_reduce(tensor, group=brief, async_op=True)
        assert work is not None
        work.wait()
        answer = [raised(tensor.cpu), raised(tensor.cpu), work.is_completed(), work.is_success()]
        answer.append(backend.collective_record()[-1])
        with open(f"{prefix}0.json", encoding="utf-8") as file:
            answer.append(json.load(file)[-1])
    del os.environ[f"{ENV_PREFIX}_COLLECTIVE_DUMP"]
    dist.barrier()
    return answer


def aborted(rank: int, size: int) -> list[str]:
    """Only rank 0 reduces, aborts the group, and tries again, with staging and without."""
    return [answer for many in (10, 1 << 18) for answer in _aborted(rank, many)]


def _aborted(rank: int, many: int) -> list[str]:
    given_up = dist.new_group(timeout=timedelta(seconds=5))
    assert given_up is not None
    answer = []
    if rank == 0:
        tensor = torch.ones(many, device=DEVICE)
        dist.all_reduce(tensor, group=given_up, async_op=True)
        given_up._get_backend(torch.device(DEVICE)).abort()
        answer = [
            raised(backend.synchronize),
            raised(lambda: dist.all_reduce(tensor, group=given_up)),
        ]
        backend.acknowledge_failure()
    dist.barrier()
    return answer


def fail_one_of_two_groups(rank: int, size: int) -> list[str]:
    """Rank 0's collective fails, and an unrelated stream continues."""
    brief = dist.new_group(timeout=timedelta(seconds=1))
    answer = []
    if rank == 0:
        other = backend.Stream()
        with backend.stream(other):
            loss = torch.ones((), device=DEVICE)
        tensor = torch.ones(10, device=DEVICE)
        work = dist.all_reduce(tensor, group=brief, async_op=True)
        assert work is not None
        while not work.is_completed():
            pass
        with backend.stream(other):
            answer = [raised(loss.item)]
        answer += [raised(work.wait), raised(work.wait)]
        dist.destroy_process_group(brief)
        answer.append(raised(backend.synchronize))
    dist.barrier()
    return answer


def differing(rank: int, size: int) -> list[str]:
    """The ranks call a collective with different sizes, dtypes, operations and roots.

    Small tensors are staged, and large ones are not if the devices can share memory. Also in new
    groups, whose ranks have not communicated yet.
    """
    answers = [answer for many in (3, 1 << 18) for answer in _differing(rank, many)]
    for one, other in ((0, 3), (3, 0), (0, 1 << 18), (3, 1 << 18)):
        group = dist.new_group()
        answers += _differing_sizes((one, other)[rank], group)
        dist.destroy_process_group(group)
    return answers


def _differing_sizes(many: int, group: Any) -> list[str]:
    def ones(times: int = 1) -> torch.Tensor:
        return torch.ones(times * many, device=DEVICE)

    calls: list[Callable[[], Any]] = [
        lambda: dist.all_reduce(ones(), group=group),
        lambda: dist.broadcast(ones(), 0, group=group),
        lambda: dist.all_gather_into_tensor(ones(2), ones(), group=group),
        lambda: dist.reduce_scatter_tensor(ones(), ones(2), group=group),
        lambda: dist.reduce(ones(), 0, group=group),
    ]
    return _answers(calls, group)


def _answers(calls: list[Callable[[], Any]], group: Any = None) -> list[str]:
    answers = []
    for call in calls:
        answers.append(raised(call) or raised(backend.synchronize))
        backend.acknowledge_failure()
    dist.barrier(group=group)
    return answers


def _differing(rank: int, many: int) -> list[str]:
    calls: list[Callable[[], Any]] = [
        lambda: dist.all_reduce(torch.ones(many + rank, device=DEVICE)),
        lambda: dist.all_reduce(
            torch.ones(many, dtype=(torch.float32, torch.int32)[rank % 2], device=DEVICE)
        ),
        lambda: dist.all_reduce(
            torch.ones(many, device=DEVICE), op=(dist.ReduceOp.SUM, dist.ReduceOp.MAX)[rank % 2]
        ),
        lambda: dist.broadcast(torch.ones(many + rank, device=DEVICE), 0),
        lambda: dist.broadcast(torch.ones(many, device=DEVICE), rank),
        lambda: dist.all_gather_into_tensor(
            torch.ones(2 * (many + rank), device=DEVICE), torch.ones(many + rank, device=DEVICE)
        ),
        lambda: dist.reduce_scatter_tensor(
            torch.ones(many + rank, device=DEVICE), torch.ones(2 * (many + rank), device=DEVICE)
        ),
        lambda: dist.all_to_all_single(
            torch.ones(2 * many, device=DEVICE),
            torch.ones(2 * many, device=DEVICE),
            [many - rank, many + rank],
            [many, many],
        ),
        lambda: dist.reduce(torch.ones(many, device=DEVICE), rank),
    ]
    return _answers(calls)


def sparse(rank: int, size: int) -> list[str]:
    """Collectives of sparse tensors, in a group of one backend and of two."""
    groups = [
        dist.new_group(backend=f"{DEVICE}ccl"),
        dist.new_group(backend=f"cpu:gloo,{DEVICE}:{DEVICE}ccl"),
    ]
    tensors = [
        torch.sparse_coo_tensor(torch.tensor([[rank]]), torch.ones(1), (4,)).to(DEVICE),
        torch.eye(3).to_sparse_csr().to(DEVICE),
    ]
    calls: list[Callable[[Any, torch.Tensor], Any]] = [
        lambda group, tensor: dist.all_reduce(tensor, group=group),
        lambda group, tensor: dist.broadcast(tensor, 0, group=group),
    ]
    return [
        raised(lambda call=call, group=group, tensor=tensor: call(group, tensor))  # type: ignore[misc]
        for group in groups
        for tensor in tensors
        for call in calls
    ]


def wait_with_short_timeout(rank: int, size: int) -> str:
    """Rank 0 waits 50 ms on the host for a message that is not sent in time."""
    answer = ""
    if rank == 0:
        work = dist.irecv(torch.ones(3, device=DEVICE), 1, tag=9)
        assert work is not None
        answer = raised(lambda: work.wait(timedelta(milliseconds=50)))
    dist.barrier()
    if rank == 1:
        dist.send(torch.ones(3, device=DEVICE), 0, tag=9)
    backend.synchronize()
    return answer
