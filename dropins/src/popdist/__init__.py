"""PopDist's interface over Pilotage: programs written for Graphcore's poprun run on several instances of any device.

No SDK is needed. Where a vendor's ``popdist`` is installed, do not install this one beside it.
``popdist.rank`` is the number of this instance, as `getInstanceIndex` gives it.
"""

from __future__ import annotations

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
    # Asked for late, since a process may be told its place after the import.
    if name == "rank":
        return getInstanceIndex()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
