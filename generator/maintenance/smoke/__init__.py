"""Smoke builds: combinations of answers, each rendered, built and tested as its user would."""

STRENGTHS = {"each": 1, "pairwise": 2, "3-way": 3, "all": 0}
"""What the rows of a run cover: how many values together, where 0 stands for all."""

STAGES = ("render", "build", "test")
"""What is done with a row, up to where the run goes."""
