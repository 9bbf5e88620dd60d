"""Checks PyTorch's interfaces for backends: ``python -m <package>.doctor``.

The doctor tests each interface on the device. It also reads the headers of the installed PyTorch
for virtual functions that its list does not have. It is not part of the device module:
``import torch`` does not load it.
"""
