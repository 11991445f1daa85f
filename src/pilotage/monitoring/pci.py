"""Count the accelerators of this machine without any vendor's software."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pilotage.monitoring.kernel_files import text_of

_NVIDIA, _HABANA, _GRAPHCORE = "0x10de", "0x1da3", "0x1d95"
_DISPLAY_CLASSES = ("0x0300", "0x0302")


@dataclass(frozen=True, slots=True)
class CardCounts:
    """How many accelerators of each maker the machine has."""

    nvidia: int
    gaudi: int
    ipu: int


def count_cards(root: Path = Path("/")) -> CardCounts:
    """Count the accelerators on the PCI bus; if the bus is hidden, count the device files of NVIDIA's driver."""
    devices = [(text_of(entry / "vendor"), text_of(entry / "class")) for entry in root.glob("sys/bus/pci/devices/*")]
    nvidia = sum(vendor == _NVIDIA and kind.startswith(_DISPLAY_CLASSES) for vendor, kind in devices)
    return CardCounts(
        nvidia=nvidia or len(list(root.glob("dev/nvidia[0-9]*"))),
        gaudi=sum(vendor == _HABANA for vendor, _ in devices),
        ipu=sum(vendor == _GRAPHCORE for vendor, _ in devices),
    )
