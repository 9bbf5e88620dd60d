"""Whether what is rendered fits the PyTorch releases that it claims, without installing them.

The macOS wheels of PyTorch hold the same headers and Python sources as the others and are a tenth
of their size. `python -m maintenance.compat` checks a full render against those of each release.
"""
