"""Tools for maintainers of the template: page, smoke builds, checks of PyTorch releases, docs.

None of it is in the wheel.
"""
