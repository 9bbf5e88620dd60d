"""Marks of tests that need a kernel of another feature, or a function of the device library."""

from __future__ import annotations

import pytest
import torch
from backend import backend
from support import has_function

tells_of_the_hosts_failures = pytest.mark.skipif(
    not has_function("failures", "fail_stream"),
    reason="the device's streams cannot report failures that the host finds",
)

queues_messages = pytest.mark.skipif(
    not backend.get_device_properties(0).host_functions,
    reason="without host functions, the caller waits for each message",
)


def needs_kernel(operator: str, key: str = "PrivateUse1") -> pytest.MarkDecorator:
    """Skip a test in projects without the feature that has this operator's kernel."""
    return pytest.mark.skipif(
        not torch._C._dispatch_has_kernel_for_dispatch_key(operator, key),
        reason=f"this project has no kernel of {operator}",
    )
