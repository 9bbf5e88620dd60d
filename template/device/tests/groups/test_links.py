"""The links between devices, and between devices and the host."""

from __future__ import annotations

from types import ModuleType

GROUP = "links"


def test_every_pair_of_devices_has_a_link(api: ModuleType) -> None:
    devices = range(api.device_count())
    for device in devices:
        for other in (api.HOST, *devices):
            if other != device:
                link = api.link_between(device, other)
                assert link.kind in api.LinkKind
                assert link.bandwidth >= 0


def test_a_link_is_the_same_from_both_ends(api: ModuleType, second_device: int) -> None:
    there = api.link_between(0, second_device)
    back = api.link_between(second_device, 0)
    assert (there.kind, there.bandwidth) == (back.kind, back.bandwidth)
