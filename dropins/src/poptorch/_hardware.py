"""Answers questions about IPUs: the machine has none, unless the user asks for the answers of one that does."""

from __future__ import annotations

from pilotage.engine import Noted, environment, log_event
from poptorch._checks.ipus import MOST_IPUS
from poptorch._options.execution import uses_ipu_model_by_environment

__all__ = ["ipuHardwareIsAvailable", "ipuHardwareVersion"]

_VERSION = 2
"""The version of the IPUs that PopTorch compiles for by default."""

_ADVICE = (
    "poptorch.ipuHardwareIsAvailable() is False, because this machine has no IPU. If the program does nothing for that "
    f"reason, set {environment.IPU_AVAILABLE.name}=1: the function is then True, and models run on the device that "
    "Pilotage chooses."
)


def ipuHardwareIsAvailable(num_ipus: int = 1) -> bool:
    """Whether this many IPUs are available: False, or with PILOTAGE_IPU_AVAILABLE=1 True for up to 64.

    False with POPTORCH_IPU_MODEL and POPTORCH_SMALL_IPU_MODEL, as in PopTorch.
    """
    if environment.ipus_are_pretended():
        return 0 < num_ipus <= MOST_IPUS and not uses_ipu_model_by_environment()
    log_event(Noted(message=_ADVICE, can_be_changed=True))
    return False


def ipuHardwareVersion() -> int:
    """The version of the IPUs, 2, if they are available; otherwise an AssertionError."""
    if not ipuHardwareIsAvailable():
        raise AssertionError("No IPU hardware available. Ask poptorch.ipuHardwareIsAvailable() first.")
    return _VERSION
