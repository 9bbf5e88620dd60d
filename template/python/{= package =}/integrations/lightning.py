"""Lightning on this device: ``Trainer(strategy=single_device())``.

For an unknown accelerator, Lightning selects the CPU as device and CUDA's precision. The strategy
here sets accelerator, device and precision.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from lightning.pytorch.accelerators import Accelerator
from lightning.pytorch.plugins.precision import MixedPrecision, Precision
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from .._build import NAME

__all__ = ["DeviceAccelerator", "mixed_precision", "single_device"]

backend: Any = torch.get_device_module(NAME)


class DeviceAccelerator(Accelerator):
    """The accelerator for Lightning. Use it through :func:`single_device`."""

    def setup_device(self, device: torch.device) -> None:
        """Make ``device`` the current one.

        Raises:
            ValueError: Lightning chose a device of another type.
        """
        if device.type != NAME:
            raise ValueError(
                f"Lightning placed the model on {device}, not on {NAME}: give the Trainer "
                "strategy=single_device() instead of this accelerator"
            )
        backend.set_device(device)

    def setup(self, trainer: Any) -> None:
        """Check that Lightning's precision plugin is for this device.

        Raises:
            ValueError: the Trainer has ``precision=``, which would train in float32.
        """
        precision = trainer.precision_plugin
        if isinstance(precision, MixedPrecision) and precision.device != NAME:
            raise ValueError(
                f"Lightning would autocast for {precision.device}, not for {NAME}: give "
                f"single_device() the precision '{precision.precision}' instead of the Trainer"
            )

    def teardown(self) -> None:
        """Release cached memory."""
        backend.empty_cache()

    def get_device_stats(self, device: Any) -> dict[str, Any]:
        """Return the device's memory statistics, for ``DeviceStatsMonitor``."""
        return dict(backend.memory_stats(device))

    @staticmethod
    def parse_devices(devices: int | str | list[int]) -> list[int]:
        """Return the indices for ``Trainer(devices=...)``; a number means the first devices.

        Raises:
            MisconfigurationException: there is no such device, or an index is given twice.
        """
        count = backend.device_count()
        if isinstance(devices, str) and "," in devices:
            devices = [int(index) for index in devices.split(",") if index.strip()]
        if not isinstance(devices, list):
            devices = list(range(count if int(devices) == -1 else int(devices)))
        if not set(devices) <= set(range(count)) or len(set(devices)) < len(devices):
            raise MisconfigurationException(
                f"the {NAME} devices {devices} were requested, and this machine has {count}: "
                "give different indices below this number"
            )
        return devices

    @staticmethod
    def get_parallel_devices(devices: list[int]) -> list[torch.device]:
        """Return the devices with these indices."""
        return [torch.device(NAME, index) for index in devices]

    @staticmethod
    def auto_device_count() -> int:
        """Return 1, as :func:`single_device` uses one device."""
        return 1

    @staticmethod
    def is_available() -> bool:
        """Return whether there is a device."""
        return bool(backend.is_available())

    @staticmethod
    def name() -> str:
        """Return the device type."""
        return NAME


def mixed_precision(precision: Literal["16-mixed", "bf16-mixed"]) -> Precision:
    """Return the plugin that trains under this device's autocast, with a grad scaler for float16.

    Raises:
        AssertionError: the backend was generated without autocast (raised by PyTorch).
        ValueError: the precision has another name, or autocast does not support its dtype here.
    """
    plugin = MixedPrecision(precision, NAME)
    with plugin.autocast_context_manager():
        if not torch.is_autocast_enabled(NAME):
            raise ValueError(f"autocast on {NAME} has no dtype for the precision '{precision}'")
    return plugin


def single_device(
    index: int = 0, precision: Literal["16-mixed", "bf16-mixed"] | None = None
) -> SingleDeviceStrategy:
    """Return the strategy that trains on device ``index``, in float32 or in mixed ``precision``.

    Raises:
        AssertionError, ValueError: see :func:`mixed_precision`.
    """
    return SingleDeviceStrategy(
        device=torch.device(NAME, index),
        accelerator=DeviceAccelerator(),
        precision_plugin=mixed_precision(precision) if precision else None,
    )
