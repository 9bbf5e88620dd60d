"""What other files here import by its short name, as PyTorch's import common_utils.py and test_ops.py."""

NUMBERS = (1.0, 2.0, 3.0)
