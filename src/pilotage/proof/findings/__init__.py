"""Findings: accidents that records show, each with a line and a remedy."""
