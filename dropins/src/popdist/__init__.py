"""PopDist's interface over Pilotage: programs written for Graphcore's poprun run in several instances on any device.

No SDK is needed. Do not install this package alongside a vendor's ``popdist``.
``popdist.rank`` is the index of this instance, like `getInstanceIndex`.
"""

from __future__ import annotations

from pilotage_dropins import needs_torch as _needs_torch  # noqa: F401
from popdist._backend import (
    finalizeBackend,
    init,
    initializeBackend,
    isBackendInitialized,
    registerBackend,
    registerDefaultBackend,
)
from popdist._communicators import execute_on_instances, registerCommunicator
from popdist._environment import (
    checkNumIpusPerReplica,
    getDeviceId,
    getInstanceIndex,
    getLocalInstanceIndex,
    getNumInstances,
    getNumIpusPerReplica,
    getNumLocalReplicas,
    getNumTotalReplicas,
    getReplicaIndexOffset,
    isPopdistEnvSet,
)

__all__ = [
    "checkNumIpusPerReplica",
    "execute_on_instances",
    "finalizeBackend",
    "getDeviceId",
    "getInstanceIndex",
    "getLocalInstanceIndex",
    "getNumInstances",
    "getNumIpusPerReplica",
    "getNumLocalReplicas",
    "getNumTotalReplicas",
    "getReplicaIndexOffset",
    "init",
    "initializeBackend",
    "isBackendInitialized",
    "isPopdistEnvSet",
    "registerBackend",
    "registerCommunicator",
    "registerDefaultBackend",
]


def __getattr__(name: str) -> int:
    # Computed late, because the environment may be set after the import.
    if name == "rank":
        return getInstanceIndex()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
