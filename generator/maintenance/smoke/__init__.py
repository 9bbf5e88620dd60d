"""Smoke builds: combinations of answers, each rendered, built and tested as users do."""

STRENGTHS = {"each": 1, "pairwise": 2}
"""How many values are combined in the rows of a run."""

STAGES = ("render", "build", "test")
"""The stages of a row; a run can stop after each."""
