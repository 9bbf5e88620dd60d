"""The commands of `torchsmith`, one file for each group.

A module here imports nothing slow at its top: `torchsmith --help` imports them all.
"""
