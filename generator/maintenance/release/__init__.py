"""Rehearses a release of the template and of a project, without publishing it.

`python -m maintenance.release` runs the steps of the release workflows on this machine.
"""
