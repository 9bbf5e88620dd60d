"""Other files import this by its short name, as PyTorch's tests import common_utils.py."""

NUMBERS = (1.0, 2.0, 3.0)
