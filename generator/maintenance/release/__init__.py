"""Rehearses a release, of the template and of a project, and publishes nothing.

`python -m maintenance.release` does what the workflows of a release do, on this machine.
"""
