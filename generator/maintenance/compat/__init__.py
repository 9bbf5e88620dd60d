"""Checks a render against every supported PyTorch release, without installing them.

The macOS wheels of PyTorch contain the same headers and Python sources as the others and are a
tenth of their size. `python -m maintenance.compat` checks a full render against each release.
"""
