"""Constants of the detector's images."""

from __future__ import annotations

PLANES = 3
"""Wire planes of an event: two induction planes and the collection plane."""

HEIGHT = 1280
"""Rows of a full image (drift time)."""

WIDTH = 2048
"""Columns of a full image (wires)."""

BACKGROUND, COSMIC, NEUTRINO = 0, 1, 2
"""The three classes of a pixel."""

MAX_DOWNSAMPLE = 7
"""1280 is 5 * 2**8; one halving is left for the network."""
