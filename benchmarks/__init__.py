"""Measurements: every figure that the documents name is printed by one of these.

Times on shared machines are noisy, so contenders take turns in one run and are compared as a ratio of medians.
"""
