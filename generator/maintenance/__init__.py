"""What maintainers of the template run: page, smoke builds, checks of PyTorch releases, docs.

None of it is in the wheel.
"""
