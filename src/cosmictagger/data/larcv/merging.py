"""Joining files of events into one, table by table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import h5py

POINTS_TO = {
    "sparse2d": {"extents": "voxel_extents", "voxel_extents": "voxels"},
    "cluster2d": {
        "extents": "projection_extents",
        "projection_extents": "cluster_extents",
        "cluster_extents": "voxels",
    },
    "particle": {"extents": "particles"},
}
"""For each kind of group, the table whose rows the column ``first`` of a table counts."""


def merge_files(path: str | Path, parts: Sequence[Path]) -> Path:
    """Write the events of several files, in their order, to one file, which gets its name when it is complete."""
    import h5py

    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with h5py.File(unfinished, "w") as merged:
            for part in parts:
                with h5py.File(part, "r") as file:
                    _append(merged, file)
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def _append(merged: h5py.File, part: h5py.File) -> None:
    for name, value in part.attrs.items():
        merged.attrs.setdefault(name, value)
    tables: list[str] = []
    part.visititems(lambda name, node: tables.append(name) if hasattr(node, "dtype") else None)
    before = {name: int(merged[name].shape[0]) if name in merged else 0 for name in tables}
    for name in tables:
        rows = part[name][:]
        if (target := _target(name)) is not None:
            rows["first"] += before[target]
        _extend(merged, name, rows, part[name])


def _target(name: str) -> str | None:
    """The table that the rows of a table point to."""
    group, _, table = name.rpartition("/")
    kind = group.rpartition("/")[2].partition("_")[0]
    target = POINTS_TO.get(kind, {}).get(table)
    return None if target is None else f"{group}/{target}"


def _extend(merged: h5py.File, name: str, rows: Any, like: h5py.Dataset) -> None:
    if name not in merged:
        options = {"compression": like.compression, "compression_opts": like.compression_opts}
        merged.create_dataset(name, data=rows, chunks=like.chunks, maxshape=(None,), **options)
        return
    table = merged[name]
    count = int(table.shape[0])
    table.resize(count + len(rows), axis=0)
    table[count:] = rows
