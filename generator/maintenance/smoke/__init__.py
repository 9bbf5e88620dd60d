"""Smoke builds: combinations of answers, each rendered, built and tested as users do."""

STRENGTHS = {"each": 1, "pairwise": 2, "3-way": 3, "all": 0}
"""How many values are combined in the rows of a run; 0 means all."""

STAGES = ("render", "build", "test")
"""The stages of a row; a run can stop after each."""
