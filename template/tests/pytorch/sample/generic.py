"""The common forms of PyTorch's tests, and a class that is not a test of a device."""

import unittest

import torch
from neighbour import NUMBERS
from torch.testing._internal.common_device_type import (
    deviceCountAtLeast,
    dtypes,
    instantiate_device_type_tests,
    onlyCPU,
    onlyNativeDeviceTypes,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase, parametrize, run_tests


class TestGeneric(TestCase):
    def test_plain(self, device):
        self.assertEqual(torch.tensor(NUMBERS, device=device).sum().item(), 6.0)
        self.assertNotEqual(torch.device(device).type, "cpu")

    @dtypes(torch.float32, torch.int64)
    def test_dtype(self, device, dtype):
        self.assertEqual(torch.ones(2, device=device, dtype=dtype).dtype, dtype)

    @parametrize("size", (0, 3))
    def test_size(self, device, size):
        self.assertEqual(torch.ones(size, device=device).numel(), size)

    @ops(
        [op for op in op_db if op.full_name in ("sin", "linalg.det")],
        allowed_dtypes=(torch.float32,),
    )
    def test_operator(self, device, dtype, op):
        for sample in op.sample_inputs(device, dtype):
            op(sample.input, *sample.args, **sample.kwargs)

    @onlyNativeDeviceTypes
    def test_native(self, device):
        pass

    @onlyCPU
    def test_of_the_cpu(self, device):
        self.fail("only the CPU runs this")

    @deviceCountAtLeast(1)
    def test_devices(self, devices):
        self.assertIsInstance(devices, list)

    @unittest.skip("left out by its own file")
    def test_left_out(self, device):
        pass

    def test_unheard_of(self, device):
        raise NotImplementedError(f"{torch.device(device).type} does not support torch.bits8")


class TestOfNoDevice(TestCase):
    def test_is_not_collected(self):
        self.fail("is no test of a device")


instantiate_device_type_tests(TestGeneric, globals())

if __name__ == "__main__":
    run_tests()
