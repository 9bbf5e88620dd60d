"""A file in a folder, which imports from its own and from the one above."""

from beside import VALUE
from neighbour import NUMBERS
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase


class TestFolder(TestCase):
    def test_imports(self, device):
        self.assertEqual(VALUE, len(NUMBERS))


instantiate_device_type_tests(TestFolder, globals())
