"""The placement report: where and how a run was actually done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cosmictagger.devices.executor import Placement
from pilotage import write_whole


def placement_lines(placement: Placement, *, asked: str, samples: int) -> Iterator[str]:
    """The placement and the request, as log lines."""
    yield "-- PLACEMENT --"
    yield f"asked for.......: {asked}"
    yield f"device..........: {placement.device}"
    yield f"backend.........: {placement.backend}"
    yield f"tier............: {placement.tier}"
    if placement.reason:
        yield f"chosen because..: {placement.reason}"
    yield f"precision.......: {placement.precision}"
    yield f"optimizer.......: {placement.optimizer}, stepped {placement.updates} times"
    yield f"compiled........: {_compiled(placement)}"
    yield f"instances.......: {placement.instances}"
    yield f"replicas........: {placement.replicas} in each, {placement.replicas * placement.instances} in all"
    yield f"exchange........: {placement.exchange}"
    yield f"samples seen....: {samples}"
    if placement.peak_memory_bytes is not None:
        yield f"peak memory.....: {placement.peak_memory_bytes / 2**30:.2f} GiB"
    for problem in placement.problems:
        yield f"PROBLEM.........: {problem}"


def _compiled(placement: Placement) -> str:
    if not placement.compiled:
        return "no, operation by operation"
    return f"yes, in {placement.compilation_seconds:.2f} s" if placement.compilation_seconds else "yes"


def write_report(folder: Path, placement: Placement, numbers: dict[str, Any]) -> None:
    """Write the placement and results to ``report.json``."""
    content = {"placement": asdict(placement), **numbers}
    write_whole(folder / "report.json", (json.dumps(content, indent=1) + "\n").encode())
