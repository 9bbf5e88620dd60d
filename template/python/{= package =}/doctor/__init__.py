"""Checks PyTorch's interfaces for backends: ``python -m <package>.doctor``.

Each surface that PyTorch offers a backend is tried, on the device; the headers of the installed PyTorch
are searched for virtual functions that this list does not have. Not part of the device module:
``import torch`` does not load it.
"""
