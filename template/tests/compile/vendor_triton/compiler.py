"""Triton's interface to the compiler of the backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any

from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget

from .driver import name


@dataclass(frozen=True)
class Options:
    """The options that Triton and Inductor read."""

    num_warps: int = 1
    num_stages: int = 1
    num_ctas: int = 1
    debug: bool = False
    sanitize_overflow: bool = False
    enable_fp_fusion: bool = True
    backend_name: str = "vendor"
    supported_fp8_dtypes: tuple[str, ...] = ()
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee",)
    default_dot_input_precision: str = "ieee"
    max_num_imprecise_acc_default: int = 0

    def hash(self) -> str:
        return repr(self)


class Backend(BaseBackend):
    """Ends with an error where a vendor's own stages would begin."""

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == name()

    def hash(self) -> str:
        return str(self.target)

    def parse_options(self, options: dict[str, Any]) -> Options:
        known = {each.name for each in fields(Options)}
        return Options(**{name: value for name, value in options.items() if name in known})

    def add_stages(self, stages: dict[str, Any], options: Options, *_: Any) -> None:
        stages["ttir"] = optimize
        stages["binary"] = end

    def load_dialects(self, context: Any) -> None:
        """Load no dialects. A vendor would load its own here."""

    def get_codegen_implementation(self, options: Options) -> dict[str, Callable[..., Any]]:
        return {}

    def get_module_map(self) -> dict[str, ModuleType]:
        """Return the modules of functions such as ``exp``."""
        from triton.language import math  # here, as it imports the backends

        return {"triton.language.extra.libdevice": math}


def optimize(module: Any, metadata: dict[str, Any]) -> Any:
    manager = ir.pass_manager(module.context)
    passes.common.add_inliner(manager)
    passes.common.add_canonicalizer(manager)
    passes.common.add_cse(manager)
    manager.run(module, "optimize")
    return module


def end(module: Any, metadata: dict[str, Any]) -> bytes:
    raise NotImplementedError("this backend of Triton ends at TTIR")
