"""What to do in each function of runtime.h, in the words of an SDK."""

from __future__ import annotations

TEST_FILES = {
    "Devices": "test_devices.py",
    "Memory": "test_memory.py",
    "Streams": "test_streams.py",
    "Events": "test_events.py",
    "Data": "test_copies.py",
}
"""The tests of each group, in device/tests/runtime."""

STEPS = {
    "device_count": "Ask the driver how many devices there are; 0 where there is no driver.",
    "properties": (
        "Fill in the struct from what the SDK says of the device; what it does not say stays "
        "0. The flags say what the device can do: begin with all of them false."
    ),
    "memory_info": (
        "Ask the SDK how many bytes of the device's memory are free, and how many there are."
    ),
    "can_access_peer": (
        "Ask the SDK; false where there is no direct way between the two devices, and for one "
        "device twice."
    ),
    "synchronize_device": (
        "Wait for every stream of the device, then throw the first failure that nobody was told of."
    ),
    "allocate": (
        "The SDK's allocation on this device. Throw kOutOfMemory when there is no memory left."
    ),
    "deallocate": (
        "Give it back. Nothing uses the memory any more, so there is nothing to wait for."
    ),
    "allocate_host": (
        "The SDK's page-locked host memory; aligned host memory where it has no such thing."
    ),
    "deallocate_host": "Give it back. Nothing uses the memory any more.",
    "describe": (
        "Say which allocation the address lies in: ask the SDK, or keep a map of what "
        "allocate and allocate_host gave. One device's addresses may be another's too, so "
        "keep one map for each."
    ),
    "host_address": (
        "Where the host may read and write this byte, on a device that shares its memory; "
        "else null."
    ),
    "default_stream": (
        "One stream for each device, made at its first use, which lives as long as the process."
    ),
    "create_stream": (
        "The SDK's new stream, that does not wait for its default stream. Clamp the priority."
    ),
    "destroy_stream": "Wait for the stream's work, then give the stream back.",
    "stream_device": "The device that the stream was made for: keep it in your StreamObject.",
    "native_handle": "The SDK's own stream, for those who call the SDK beside PyTorch.",
    "query_stream": "Ask the SDK whether the stream has done its work. Must not wait.",
    "synchronize_stream": (
        "Wait for the stream's work, then throw the first failure that nobody was told of."
    ),
    "wait": (
        "Let the stream wait for the event on the device, not here: the SDK's stream-wait-event."
    ),
    "launch_host": "The SDK's host function in stream order. Leave it out where the SDK has none.",
    "create_event": "The SDK's new event, with or without timing.",
    "destroy_event": "Give it back; work that waits for it goes on waiting.",
    "record": "Let the event stand for all that is enqueued on the stream by now.",
    "query_event": (
        "Ask the SDK whether that work is done; kDone for an event that was never recorded. "
        "Must not wait."
    ),
    "synchronize_event": (
        "Wait for that work, then throw the first failure that nobody was told of."
    ),
    "elapsed_ms": "The SDK's time between two events, in milliseconds.",
    "copy_bytes": (
        "The SDK's asynchronous copy, in any direction. With host memory that is not "
        "page-locked, wait until it is done before you return."
    ),
    "fill_bytes": "The SDK's asynchronous memset.",
}
"""By the function's name."""
