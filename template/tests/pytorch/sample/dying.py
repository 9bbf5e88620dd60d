"""A test that ends the interpreter, one that hangs, and others that run nevertheless."""

import os
import time

from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase


class TestDying(TestCase):
    def test_a_runs(self, device):
        pass

    def test_b_dies(self, device):
        os.abort()

    def test_c_runs(self, device):
        pass

    def test_d_hangs(self, device):
        time.sleep(3600)

    def test_e_leaves(self, device):
        os._exit(3)

    def test_f_runs(self, device):
        pass


instantiate_device_type_tests(TestDying, globals())
