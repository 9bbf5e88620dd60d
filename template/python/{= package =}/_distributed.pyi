"""The compiled part of :mod:`.distributed`."""

from datetime import timedelta

from torch._C._distributed_c10d import Backend, Store

def create(
    store: Store, rank: int, size: int, host: Backend, name: str, timeout: timedelta
) -> Backend: ...
def can_share() -> bool: ...
def dump() -> str: ...
