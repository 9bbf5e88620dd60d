"""Torchsmith: the generator around the template that gives hardware a PyTorch backend."""

__version__ = "0.1.0"
