"""What to do in each function of runtime.h: the comments in a new runtime.cpp."""

from __future__ import annotations

TEST_FILES = {
    "Devices": "test_devices.py",
    "Memory": "test_memory.py",
    "Streams": "test_streams.py",
    "Events": "test_events.py",
    "Data": "test_copies.py",
}
"""The test file of each group, in device/tests/runtime."""

STEPS = {
    "device_count": "Ask the driver how many devices there are; 0 where there is no driver.",
    "properties": (
        "Fill in the struct from the SDK's properties of the device; leave the others 0. The "
        "flags say what the device can do: begin with all of them false."
    ),
    "memory_info": (
        "Ask the SDK how many bytes of the device's memory are free, and how many there are."
    ),
    "can_access_peer": (
        "Ask the SDK; false if there is no direct access between the two devices, or if both are "
        "the same."
    ),
    "synchronize_device": (
        "Wait for every stream of the device, then throw the first failure not reported yet."
    ),
    "allocate": (
        "The SDK's allocation on this device. Throw kOutOfMemory when there is no memory left."
    ),
    "deallocate": ("Free the memory. No work uses it any more, so there is nothing to wait for."),
    "allocate_host": (
        "The SDK's page-locked host memory; aligned host memory if it has no such thing."
    ),
    "deallocate_host": "Free the memory. No work uses it any more.",
    "describe": (
        "Say which allocation the address lies in: ask the SDK, or keep a map of the results of "
        "allocate and allocate_host. Two devices may use the same addresses, so keep one map for "
        "each device."
    ),
    "host_address": (
        "The host address of this byte, if the device shares its memory with the host; else null."
    ),
    "default_stream": ("One stream for each device, made at its first use and never destroyed."),
    "create_stream": (
        "A new stream of the SDK that does not synchronise with its default stream. Clamp the "
        "priority."
    ),
    "destroy_stream": "Wait for the stream's work, then destroy the stream.",
    "stream_device": "The device that the stream was made for: keep it in your StreamObject.",
    "native_handle": "The SDK's own stream, for code that calls the SDK itself.",
    "query_stream": "Ask the SDK whether the stream has done its work. Must not wait.",
    "synchronize_stream": (
        "Wait for the stream's work, then throw the first failure not reported yet."
    ),
    "wait": (
        "Let the stream wait for the event on the device, not here: the SDK's stream-wait-event."
    ),
    "launch_host": "The SDK's stream-ordered host function. Leave it out if the SDK has none.",
    "create_event": "A new event of the SDK, with or without timing.",
    "destroy_event": "Destroy the event; work that waits for it goes on waiting.",
    "record": "Record the event: it completes with all work enqueued on the stream so far.",
    "query_event": (
        "Ask the SDK whether that work is done; kDone for an event that was never recorded. "
        "Must not wait."
    ),
    "synchronize_event": ("Wait for that work, then throw the first failure not reported yet."),
    "elapsed_ms": "The SDK's time between two events, in milliseconds.",
    "copy_bytes": (
        "The SDK's asynchronous copy, in any direction. With host memory that is not "
        "page-locked, wait until it is done before you return."
    ),
    "fill_bytes": "The SDK's asynchronous memset.",
}
"""The comments, by the function's name."""

STEPS_WITH_HANDLES = STEPS | {
    "allocate": "A buffer of the SDK's, and an address for it that nobody can follow.",
    "deallocate": "The address goes, then the buffer.",
    "allocate_host": (
        "The SDK's page-locked memory, in whole lines where it copies such. Insert it into "
        "host_buffers(), by which describe knows it and a copy finds its handle."
    ),
    "deallocate_host": "What host_buffers().erase(address) gives is destroyed.",
    "describe": "Both kinds of memory are looked up.",
    "host_address": "An address of this device is no pointer that the host could follow.",
    "create_stream": (
        "A new stream of the SDK that does not synchronise with its default stream. Clamp the "
        "priority. Where the SDK takes work as lists of commands, a stream is a CommandStream of "
        "shared/command_lists.h, and an event a CommandEvent."
    ),
    "copy_bytes": (
        "The SDK's asynchronous copy, in any direction: addresses(device).find(address) gives the "
        "buffer and the offset in it. With host memory that is not page-locked, wait until it is "
        "done before you return. shared/line_copies.h does it for an SDK that copies whole lines."
    ),
    "fill_bytes": (
        "The SDK's asynchronous memset: addresses(stream_device(stream)).find(to) gives the buffer "
        "and the offset in it."
    ),
}
"""The same where the SDK has buffers by handle."""

BODIES_WITH_HANDLES = {
    "allocate": """\
{
  const Buffer buffer = create_buffer(device, bytes);
  if (void* const address = addresses(device).insert(bytes, buffer)) return address;
  destroy_buffer(buffer);
  throw Error(ErrorCode::kOutOfMemory, "NO_ADDRESSES (0): all are in use");
}""",
    "deallocate": """\
{
  if (const auto buffer = addresses(device).erase(address)) destroy_buffer(*buffer);
}""",
    "describe": "{ return shared::describe<Buffer>(device, address); }",
}
"""The bodies that are written already where the SDK has buffers by handle, by name."""
