"""Smoke builds: combinations of answers, each rendered, built and tested as its user would."""
