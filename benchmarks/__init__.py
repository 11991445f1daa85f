"""Benchmarks: each figure in the documents is printed by one of these.

Times on shared machines are noisy, so the contenders alternate within one run, and their medians are compared.
"""
