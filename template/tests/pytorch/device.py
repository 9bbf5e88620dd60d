"""Sets PyTorch's instantiation of tests to this device only.

``instantiate_device_type_tests`` then creates each class once. The base class has each test and
the declarations about the test.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from backend import DEVICE
from pytorch.expectations import Case, Entry, Expectations
from torch.testing._internal import common_device_type

MARK = "_test_of_a_device"


def _test(file: str, group: str, template: str, name: str, made: Any) -> Case:
    """Describe a generated test. Its parameters are the default of its only argument."""
    given = (made.__defaults__ or ({},))[0]
    described = given.get("op") or given.get("module_info") or given.get("optim_info")
    operator = ""
    if described is not None:
        optimizer = getattr(described, "optim_cls", None)
        operator = (
            optimizer.__name__
            if optimizer
            else getattr(described, "full_name", None) or described.name
        )
    dtypes = given.get("dtypes", given.get("dtype", ()))
    if isinstance(dtypes, torch.dtype):
        dtypes = (dtypes,)
    names = tuple(str(dtype).removeprefix("torch.") for dtype in dtypes)
    return Case(file, group, template, name, operator, names)


def make_base(file: str, expectations: Expectations, lift: bool) -> Any:
    """Return the base of the classes of one file.

    Args:
        file: Path below PyTorch's ``test/``.
        expectations: The declarations.
        lift: Also run tests that PyTorch restricts to other devices.
    """

    class TestBase(common_device_type.PrivateUse1TestBase):  # type: ignore[misc]
        device_type = DEVICE
        tolerances: tuple[Entry, ...] = ()

        @classmethod
        def instantiate_test(cls, name: str, test: Any, *, generic_cls: Any = None) -> None:
            before = set(vars(cls))
            super().instantiate_test(name, test, generic_cls=generic_cls)
            for new in set(vars(cls)) - before:
                made = vars(cls)[new]
                setattr(made, MARK, _test(file, generic_cls.__name__, name, new, made))

        def run(self, result: Any = None) -> Any:
            this = getattr(getattr(self, self._testMethodName), MARK, None)
            self.tolerances = (*expectations.of(this, "tolerance"),) if this else ()
            self.bypass_device_restrictions = lift or bool(
                this and [*expectations.of(this, "bypass")]
            )
            return super().run(result)

        def _apply_precision_override_for_test(self, test: Any, given: Any) -> None:
            super()._apply_precision_override_for_test(test, given)
            for entry in self.tolerances:
                self.precision = max(self.precision, entry.absolute)
                self.rel_tol = max(self.rel_tol, entry.relative)

    return TestBase


def install(file: str, expectations: Expectations, lift: bool) -> None:
    """Make PyTorch create tests for this device only, in this process."""
    base = make_base(file, expectations, lift)
    common_device_type.device_type_test_bases[:] = [base]
    original = common_device_type.instantiate_device_type_tests

    @functools.wraps(original)
    def instantiate(
        generic: Any, scope: Any, except_for: Any = None, only_for: Any = None, **options: Any
    ) -> None:
        if lift or expectations.lifts(file, generic.__name__):
            only_for = None
        original(generic, scope, except_for=except_for, only_for=only_for, **options)

    common_device_type.instantiate_device_type_tests = instantiate
