"""What other libraries need to use this device: one module for each, imported by who needs it.

Nothing here is imported with the package, and none of the libraries is a dependency of it.
"""
