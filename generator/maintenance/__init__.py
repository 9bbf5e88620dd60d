"""Tools for maintainers of the template: page, smoke builds, checks of PyTorch releases, docs.

The wheel does not contain them.
"""
