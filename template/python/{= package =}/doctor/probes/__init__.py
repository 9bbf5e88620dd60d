"""One test function for each surface, in the order of the files."""

from ..surfaces import SURFACES
from . import devices, memory, numbers, tensors, tools

__all__ = ["SURFACES", "devices", "memory", "numbers", "tensors", "tools"]
