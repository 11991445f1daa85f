"""Reads and writes programs and tensors as files, and computes fingerprints of programs."""
