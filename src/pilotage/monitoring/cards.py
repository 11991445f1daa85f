"""The accelerators of this machine, by what their makers' software says."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.monitoring.counting import counted
from pilotage.monitoring.device import Found
from pilotage.monitoring.management_command import CommandError, ManagementCommand
from pilotage.monitoring.management_library import LibraryError, ManagementLibrary

_FORMAT = "--format=csv,noheader,nounits"
_VALUES = ("index", "uuid", "name", "driver_version", "memory.used", "memory.total")

NVIDIA = (
    ManagementLibrary("pynvml", "nvml", "NVIDIA", "cuda"),
    ManagementCommand(
        command="nvidia-smi",
        maker="NVIDIA",
        device="cuda",
        query=f"--query-gpu={{}} {_FORMAT}",
        values=(*_VALUES, "utilization.gpu", "temperature.gpu", "power.draw", "clocks.sm"),
        processes=("--query-compute-apps=gpu_uuid,pid", _FORMAT),
    ),
)

GAUDI = (
    ManagementLibrary("pyhlml", "hlml", "Gaudi", "hpu"),
    ManagementCommand(
        command="hl-smi",
        maker="Gaudi",
        device="hpu",
        query="-Q {} -f csv,noheader,nounits",
        values=(*_VALUES, "utilization.aip", "temperature.aip", "power.draw"),
    ),
)


def find_cards(maker: str, ways: Sequence[ManagementLibrary | ManagementCommand], present: int) -> Found:
    """The cards of one maker, by the first way that answers; where none does, it is said how many are present."""
    problems = []
    for way in ways:
        try:
            devices = way.devices()
        except (LibraryError, CommandError) as error:
            problems.append(str(error))
            continue
        return Found(tuple(devices), None if devices else f"{maker}: no card.")
    if not present:
        return Found(note=f"{maker}: no card.")
    return Found(note=f"{maker}: {counted(present, 'card')}, of which nothing is known: {'; '.join(problems)}.")
