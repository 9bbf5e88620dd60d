"""What Inductor asks of a device whose code it generates. Imported after its ``codegen.common``."""

from __future__ import annotations

from typing import Any

from torch._inductor.codegen.common import (
    DeviceOpOverrides,
    register_backend_for_device,
    register_device_op_overrides,
)

from .._build import NAME
from ._compilers import current


class _Calls(DeviceOpOverrides):
    """Calls of this backend that Inductor puts into the Python that it writes."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"{name} = torch._dynamo.device_interface.get_interface_for_device('{NAME}').get_raw_stream"

    def set_device(self, device_idx: int) -> str:
        return f"torch.{NAME}.set_device({device_idx})"

    def synchronize(self) -> str:
        return f"torch.{NAME}.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.{NAME}.device({device_idx})"

    def current_stream(self) -> str:
        return f"torch.{NAME}.current_stream()"


def _scheduling(scheduler: Any) -> Any:
    """Make what writes the kernels of a graph; the chosen compiler says of which class."""
    chosen = current().scheduling
    if chosen is not None:
        return chosen()(scheduler)
    from ._operators import OperatorScheduling

    return OperatorScheduling(scheduler)


class _Wrapper:
    """Stands for the class that writes the calls of a graph, which the chosen compiler names."""

    @staticmethod
    def create(*arguments: Any, **keywords: Any) -> Any:
        from torch._inductor.codegen.wrapper import PythonWrapperCodegen

        chosen = current().wrapper
        wrapper: Any = PythonWrapperCodegen if chosen is None else chosen()
        return wrapper.create(*arguments, **keywords)


def register() -> None:
    """Make the device known to Inductor."""
    register_backend_for_device(NAME, _scheduling, _Wrapper)  # type: ignore[arg-type]
    register_device_op_overrides(NAME, _Calls())
