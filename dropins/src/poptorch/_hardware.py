"""What there is to say about IPU hardware, of which there is none."""

from __future__ import annotations

__all__ = ["ipuHardwareIsAvailable", "ipuHardwareVersion"]


def ipuHardwareIsAvailable(num_ipus: int = 1) -> bool:
    """False: models run on the backends of Pilotage, with or without ``useIpuModel``."""
    return False


def ipuHardwareVersion() -> int:
    """The version of the IPUs in this machine: an error, since there are none."""
    raise AssertionError("No IPU hardware available. Ask poptorch.ipuHardwareIsAvailable() first.")
