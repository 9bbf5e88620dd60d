"""Classes and tests that PyTorch restricts to other devices."""

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, onlyCUDA
from torch.testing._internal.common_utils import TestCase


class TestOfCuda(TestCase):
    def test_works_anywhere(self, device):
        self.assertEqual(torch.zeros(2, device=device).sum().item(), 0)


class TestGeneric(TestCase):
    @onlyCUDA
    def test_says_cuda(self, device):
        self.assertNotEqual(torch.device(device).type, "cpu")


instantiate_device_type_tests(TestOfCuda, globals(), only_for=("cuda",))
instantiate_device_type_tests(TestGeneric, globals(), except_for="cpu")
