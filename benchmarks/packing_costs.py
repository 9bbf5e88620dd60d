"""Prints the time of a product with a weight packed once, against packing it each time."""

import time

import torch

SIZE, CALLS = 2048, 100


def main() -> None:
    """Measure and print."""
    backend = torch.get_device_module("foo")
    layer = torch.nn.Linear(SIZE, SIZE).to("foo").requires_grad_(False)
    x = torch.ones(1, SIZE, device="foo")

    def seconds() -> float:
        layer(x)
        backend.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            layer(x)
        backend.synchronize()
        return time.perf_counter() - start

    each_time = seconds()
    if backend.pack_weights(layer) != 1:
        raise RuntimeError("the device has no layout for the weight of a Linear")
    print(seconds() / each_time)


if __name__ == "__main__":
    main()
