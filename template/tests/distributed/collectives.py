"""Every collective on tensors of the device, and by Gloo on CPU tensors as the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from backend import DEVICE, bits

Move = Callable[[torch.Tensor, int, int], list[torch.Tensor]]
"""Takes this rank's rows, the rank and the size; returns the rank's results."""


def _all_gather(rows: torch.Tensor, rank: int, size: int) -> list[torch.Tensor]:
    outputs = [torch.zeros_like(rows) for _ in range(size)]
    dist.all_gather(outputs, rows)
    return outputs


def _all_gather_into_tensor(rows: torch.Tensor, rank: int, size: int) -> list[torch.Tensor]:
    output = rows.new_zeros(size * rows.shape[0], *rows.shape[1:])
    dist.all_gather_into_tensor(output, rows.contiguous())
    return [output]


def _broadcast(rows: torch.Tensor, rank: int, size: int) -> list[torch.Tensor]:
    dist.broadcast(rows, size - 1)
    return [rows]


def _gather(rows: torch.Tensor, rank: int, size: int) -> list[torch.Tensor]:
    outputs = [torch.zeros_like(rows) for _ in range(size)] if rank == 1 else None
    dist.gather(rows, outputs, dst=1)
    return outputs or []


def _scatter(rows: torch.Tensor, rank: int, size: int) -> list[torch.Tensor]:
    inputs = [rows.roll(i, 0) for i in range(size)] if rank == 1 else None
    # Gloo copies raw memory, so it needs the same layout on both sides.
    output = torch.zeros_like(rows, memory_format=torch.contiguous_format)
    dist.scatter(output, inputs, src=1)
    return [output]


def _all_to_all_even(rows: torch.Tensor, rank: int, size: int) -> list[torch.Tensor]:
    rows = torch.cat([rows] * size)
    output = torch.zeros_like(rows)
    dist.all_to_all_single(output, rows)
    return [output]


def _all_to_all_uneven(rows: torch.Tensor, rank: int, size: int) -> list[torch.Tensor]:
    """Rank i sends i * j rows to rank j, so that some send and receive nothing."""
    rows = torch.cat([rows] * size * size)
    sent = [rank * other if rows.shape[0] else 0 for other in range(size)]
    output = torch.zeros_like(rows[: sum(sent)])
    dist.all_to_all_single(output, rows[: sum(sent)].contiguous(), sent, sent)
    return [output]


def _send_round(rows: torch.Tensor, rank: int, size: int) -> list[torch.Tensor]:
    received = torch.zeros_like(rows, memory_format=torch.contiguous_format)
    works = [
        dist.irecv(received, (rank - 1) % size, tag=3),
        dist.isend(rows.contiguous(), (rank + 1) % size, tag=3),
    ]
    for work in works:
        assert work is not None
        work.wait()
    return [received]


MOVES: dict[str, Move] = {
    "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into_tensor,
    "broadcast": _broadcast,
    "gather": _gather,
    "scatter": _scatter,
    "all_to_all_single": _all_to_all_even,
    "all_to_all_single, uneven": _all_to_all_uneven,
    "send and recv": _send_round,
}


def numbers(rank: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield rows of numbers from 0 to 11, laid out in different ways."""
    rows = (torch.arange(12) + rank).remainder(12).view(4, 3)
    yield "contiguous", rows
    yield "transposed", rows.view(3, 4).T
    yield "with gaps", rows.repeat_interleave(2, 1)[:, ::2]
    yield "empty", rows[:0]


def table(dtype: torch.dtype) -> torch.Tensor:
    """Return 12 values, which are different if ``dtype`` allows it."""
    values = torch.arange(12, dtype=torch.float64) * 0.5 - 2
    if dtype.is_complex:
        return torch.complex(values, -values).to(dtype)
    if dtype is torch.bool:
        return values > 0
    return values.abs().to(dtype) if dtype is torch.uint8 else values.to(dtype)


def moved(rank: int, size: int, name: str, dtype: torch.dtype) -> list[str]:
    """Move values of ``dtype``, and by Gloo their indices; return the differences."""
    values = table(dtype)
    wrong = []
    for layout, rows in numbers(rank):
        expected = MOVES[name](rows.clone(), rank, size)
        on_device = values.to(DEVICE)[rows.to(DEVICE)]
        if layout == "transposed":
            on_device = on_device.T.contiguous().T
        elif layout == "with gaps":
            on_device = on_device.repeat_interleave(2, 1)[:, ::2]
        actual = MOVES[name](on_device, rank, size)
        same = len(actual) == len(expected) and all(
            mine.device.type == DEVICE and torch.equal(bits(mine.cpu()), bits(values[theirs]))
            for mine, theirs in zip(actual, expected, strict=True)
        )
        if not same:
            wrong.append(f"{layout}: {actual}, expected {[values[item] for item in expected]}")
    return wrong


def _all_reduce(rows: torch.Tensor, op: dist.ReduceOp, rank: int, size: int) -> torch.Tensor:
    dist.all_reduce(rows, op)
    return rows


def _reduce(rows: torch.Tensor, op: dist.ReduceOp, rank: int, size: int) -> torch.Tensor:
    before = rows.clone()
    dist.reduce(rows, 1, op)
    return rows if rank == 1 else before  # on other ranks the result is unspecified


def _reduce_scatter(rows: torch.Tensor, op: dist.ReduceOp, rank: int, size: int) -> torch.Tensor:
    output = torch.zeros_like(rows, memory_format=torch.contiguous_format)
    dist.reduce_scatter(output, [rows.roll(i, 0) for i in range(size)], op)
    return output


def _reduce_scatter_tensor(
    rows: torch.Tensor, op: dist.ReduceOp, rank: int, size: int
) -> torch.Tensor:
    output = torch.zeros_like(rows, memory_format=torch.contiguous_format)
    dist.reduce_scatter_tensor(output, torch.cat([rows.roll(i, 0) for i in range(size)]), op)
    return output


def _all_reduce_coalesced(
    rows: torch.Tensor, op: dist.ReduceOp, rank: int, size: int
) -> torch.Tensor:
    parts = [rows.clone(), rows[:1].clone()]
    with dist.distributed_c10d._coalescing_manager():
        for part in parts:
            dist.all_reduce(part, op)
    return torch.cat(parts)


REDUCTIONS = {
    "all_reduce": _all_reduce,
    "all_reduce, coalesced": _all_reduce_coalesced,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_tensor": _reduce_scatter_tensor,
}
OPERATIONS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]


def reduced(
    rank: int, size: int, name: str, operation: str, dtypes: list[torch.dtype]
) -> list[str]:
    """Reduce on the device and by Gloo; return differences of results or errors."""
    op = getattr(dist.ReduceOp, operation)
    wrong = []
    for dtype in dtypes:
        values = table(dtype)
        for layout, rows in numbers(rank):
            data = values[rows]
            if layout == "transposed":
                data = data.T.contiguous().T
            try:
                expected = REDUCTIONS[name](data.clone(), op, rank, size)
                if dtype is torch.bool:  # Gloo's sums count True elements
                    expected = expected.view(torch.uint8) != 0
            except (RuntimeError, ValueError) as error:
                expected = None
                reason = str(error)
            try:
                actual = REDUCTIONS[name](data.to(DEVICE), op, rank, size)
            except (RuntimeError, ValueError, TypeError) as error:
                if expected is not None:
                    wrong.append(f"{dtype}, {layout}: {error}")
                continue
            if expected is None:
                # Without elements nothing is reduced, so no operation is refused.
                if rows.numel():
                    wrong.append(f"{dtype}, {layout}: not refused, where Gloo says {reason}")
            elif not torch.equal(actual.cpu(), expected):
                wrong.append(f"{dtype}, {layout}: {actual}, expected {expected}")
    return wrong


def uneven(rank: int, size: int) -> list[bool]:
    """Gather and scatter lists whose tensors have different shapes, the first of them empty."""
    parts = [torch.full((other, 2), other + 1.0, device=DEVICE) for other in range(size)]
    outputs = [torch.zeros_like(part) for part in parts]
    dist.all_gather(outputs, parts[rank])
    gathered = all(map(torch.equal, outputs, parts))

    mine = torch.zeros_like(parts[rank])
    dist.reduce_scatter(mine, [part * (rank + 1) for part in parts])
    total = sum(range(1, size + 1))
    return [gathered, torch.equal(mine, parts[rank] * total)]


def premultiplied(rank: int, size: int) -> list[list[float]]:
    """Sum tensors that each rank first multiplies by a number or a tensor."""
    from torch._C._distributed_c10d import _make_nccl_premul_sum as by

    first, second = (torch.full((3,), rank + 1.0, device=DEVICE) for _ in range(2))
    dist.all_reduce(first, by(0.5))
    dist.reduce(second, 0, by(torch.tensor([2.0], device=DEVICE)))
    row = torch.zeros(1, device=DEVICE)
    rows = torch.full((size,), rank + 1.0, device=DEVICE)
    dist.reduce_scatter_tensor(row, rows, by(3.0))
    return [first.tolist(), second.tolist() if rank == 0 else [], row.tolist(), rows.tolist()]
