"""Prints, as JSON, the times of quantized weights and paged caches against plain ones."""

import json
import time
from collections.abc import Callable

import torch

SIZE, GROUP, ROUNDS = 2048, 128, 30
# Sizes of the decoding: sequences, heads, keys, head size, block size.
DECODING = (8, 8, 1024, 64, 16)


def ratio(one: Callable[[], object], other: Callable[[], object]) -> float:
    """Return the least time of the first, divided by that of the second, measured in turns."""
    best = [float("inf")] * 2
    for _ in range(ROUNDS):
        for i, run in enumerate((one, other)):
            start = time.perf_counter()
            run()
            torch.accelerator.synchronize()
            best[i] = min(best[i], time.perf_counter() - start)
    return best[0] / best[1]


def decoding() -> float:
    """Compare attention with one query per sequence: keys in shuffled blocks against dense ones."""
    count, heads, keys, width, block = DECODING
    serving = torch.get_device_module("foo").serving
    query = torch.randn(count, heads, width, device="foo")
    shape = (count * keys // block, block, heads, width)
    k, v = (torch.randn(shape, device="foo") for _ in range(2))
    table = torch.randperm(shape[0]).view(count, -1).int().to("foo")
    starts = torch.arange(count + 1, dtype=torch.int32).to("foo")
    used = torch.full((count,), keys, dtype=torch.int32).to("foo")
    dense_k, dense_v = (
        cache[table.long()].reshape(count, keys, heads, width).transpose(1, 2) for cache in (k, v)
    )
    return ratio(
        lambda: serving.attention_with_cache(query, k, v, starts, used, table, 1, keys),
        lambda: torch.nn.functional.scaled_dot_product_attention(
            query[:, :, None], dense_k, dense_v
        ),
    )


def main() -> None:
    """Measure and print."""
    x = torch.randn(1, SIZE, device="foo")
    eight = torch.randint(-127, 127, (SIZE, SIZE), dtype=torch.int8, device="foo")
    scales = torch.rand(SIZE, device="foo")
    bytes_of_two = torch.randint(0, 255, (SIZE, SIZE // 2), dtype=torch.uint8, device="foo")
    packed = torch._convert_weight_to_int4pack(bytes_of_two, 8)
    pairs = torch.rand(SIZE // GROUP, SIZE, 2, device="foo")
    floats = torch.randn(SIZE, SIZE).to(torch.float8_e4m3fn).to("foo").t()
    row = torch.randn(1, SIZE).to(torch.float8_e4m3fn).to("foo")
    row_scale, column_scale = torch.rand(1, 1, device="foo"), torch.rand(1, SIZE, device="foo")

    def int4_numbers() -> torch.Tensor:
        codes = torch.stack([bytes_of_two >> 4, bytes_of_two & 15], -1).float()
        grouped = codes.view(SIZE, SIZE // GROUP, GROUP).sub_(8)
        scale, shift = pairs.permute(2, 1, 0).unsqueeze(-1)
        return grouped.mul_(scale).add_(shift).view(SIZE, SIZE)

    cases = {
        "int8": (
            lambda: torch._weight_int8pack_mm(x, eight, scales),
            lambda: x @ (eight.float() * scales[:, None]).t(),
        ),
        "int4": (
            lambda: torch._weight_int4pack_mm(x, packed, GROUP, pairs),
            lambda: x @ int4_numbers().t(),
        ),
        "float8": (
            lambda: torch._scaled_mm(row, floats, row_scale, column_scale, out_dtype=x.dtype),
            lambda: (row.float() * row_scale) @ (floats.float() * column_scale),
        ),
    }
    found = {name: ratio(*pair) for name, pair in cases.items()}
    print(json.dumps({"weights": found, "decoding": decoding()}))


if __name__ == "__main__":
    main()
