"""The tables of a larcv3 HDF5 file: names, row types, chunks."""

from __future__ import annotations

import numpy as np

IMAGE_PRODUCER = "sbndwire"
LABEL_PRODUCER = "sbnd_cosmicseg"
NEUTRINO_PRODUCER = "sbndneutrino"
ENERGY_PRODUCER = "sbndsegmerged"
PREDICTION_PRODUCER = "sbnd_prediction"
EVENT_IDS = "Events/event_id"

# Offsets match the C++ structures, including padding, so that rows are read without conversion.
EVENT_ID = np.dtype([("run", "<i8"), ("subrun", "<i8"), ("event", "<i8")])
EXTENTS = np.dtype({"names": ["first", "N"], "formats": ["<u8", "<u4"], "offsets": [0, 8], "itemsize": 16})
ID_EXTENTS = np.dtype([("first", "<u8"), ("N", "<u4"), ("ID", "<u4")])
VOXEL = np.dtype({"names": ["id", "value"], "formats": ["<u8", "<f4"], "offsets": [0, 8], "itemsize": 16})
IMAGE_META = np.dtype(
    {
        "names": ["valid", "projection_id", "image_sizes", "number_of_voxels", "origin"],
        "formats": ["u1", "<u8", ("<f8", (2,)), ("<u8", (2,)), ("<f8", (2,))],
        "offsets": [0, 8, 16, 32, 48],
        "itemsize": 72,
    }
)
POINT = np.dtype([("x", "<f8"), ("y", "<f8"), ("z", "<f8"), ("t", "<f8")])
_PARTICLE_FIELDS = (
    ("id", "<u2", 0),
    ("mcst_index", "<u2", 2),
    ("mct_index", "<u2", 4),
    ("shape", "<i4", 8),
    ("current_type", "<i2", 12),
    ("interaction_type", "<i2", 14),
    ("trackid", "<u4", 16),
    ("pdg", "<i4", 20),
    ("px", "<f8", 24),
    ("py", "<f8", 32),
    ("pz", "<f8", 40),
    ("vtx", POINT, 48),
    ("end_pt", POINT, 80),
    ("first_step", POINT, 112),
    ("last_step", POINT, 144),
    ("dist_travel", "<f8", 176),
    ("energy_init", "<f8", 184),
    ("energy_deposit", "<f8", 192),
    ("process", "S64", 200),
    ("parent_trackid", "<u4", 264),
    ("parent_pdg", "<i4", 268),
    ("parent_vtx", POINT, 272),
    ("ancestor_trackid", "<u4", 304),
    ("ancestor_pdg", "<i4", 308),
    ("ancestor_vtx", POINT, 312),
)
PARTICLE = np.dtype(
    {
        "names": [name for name, _, _ in _PARTICLE_FIELDS],
        "formats": [kind for _, kind, _ in _PARTICLE_FIELDS],
        "offsets": [offset for _, _, offset in _PARTICLE_FIELDS],
        "itemsize": 344,
    }
)

GZIP_LEVEL = 4
CHUNKS = {
    "event_id": 100,
    "sparse_extents": 10,
    "particle_extents": 100,
    "extents": 100,
    "image_meta": 100,
    "particles": 500,
    "voxels": 4000,
}
"""Rows per chunk as larcv writes them, except for voxels: larcv's 1000 rows at level 1 decompress a third slower."""


def sparse_group(producer: str) -> str:
    """The group of a producer's sparse images."""
    return f"Data/sparse2d_{producer}_group"


def cluster_group(producer: str) -> str:
    """The group of a producer's pixel clusters."""
    return f"Data/cluster2d_{producer}_group"


def particle_group(producer: str) -> str:
    """The group of a producer's particles."""
    return f"Data/particle_{producer}_group"
