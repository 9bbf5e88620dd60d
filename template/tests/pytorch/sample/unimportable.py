"""Imports a module that does not exist."""

import a_module_that_nobody_has  # noqa: F401
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase


class TestUnimportable(TestCase):
    def test_nothing(self, device):
        pass


instantiate_device_type_tests(TestUnimportable, globals())
