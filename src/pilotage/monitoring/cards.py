"""The accelerators of this machine, as their vendors' software reports them."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.monitoring.device import FoundDevices
from pilotage.monitoring.management_command import CommandError, ManagementCommand
from pilotage.monitoring.management_library import LibraryError, ManagementLibrary
from pilotage.monitoring.plurals import pluralized

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


def find_cards(maker: str, sources: Sequence[ManagementLibrary | ManagementCommand], present: int) -> FoundDevices:
    """The cards of one maker from the first source that answers; if none does, a note says how many are present."""
    problems = []
    for source in sources:
        try:
            devices = source.devices()
        except (LibraryError, CommandError) as error:
            problems.append(str(error))
            continue
        return FoundDevices(tuple(devices), None if devices else f"{maker}: no card.")
    if not present:
        return FoundDevices(note=f"{maker}: no card.")
    return FoundDevices(note=f"{maker}: {pluralized(present, 'card')} without details: {'; '.join(problems)}.")
