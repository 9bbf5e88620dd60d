"""Tests that fail, one that PyTorch itself expects to fail, and one that needs a tolerance."""

import unittest

import torch
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase


class TestVerdicts(TestCase):
    def test_passes(self, device):
        pass

    def test_fails(self, device):
        self.assertEqual(torch.ones(1, device=device).item(), 2.0)

    @dtypes(torch.float32, torch.int64)
    def test_fails_for_floats(self, device, dtype):
        self.assertFalse(dtype.is_floating_point)

    @unittest.expectedFailure
    def test_expected(self, device):
        self.fail("as PyTorch expects")

    @dtypes(torch.float32)
    def test_is_off_by_a_thousandth(self, device, dtype):
        self.assertEqual(
            torch.ones(2, device=device, dtype=dtype), torch.full((2,), 1.001), exact_device=False
        )

    def setUp(self):
        super().setUp()
        self.made = True

    def test_is_set_up(self, device):
        self.assertTrue(self.made)


instantiate_device_type_tests(TestVerdicts, globals())
