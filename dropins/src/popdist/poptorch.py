"""PopTorch's options with the settings of poprun."""

from __future__ import annotations

from typing import NoReturn, Self

import popdist
from poptorch.options import Options as PlainOptions
from poptorch.options.distributed import _DistributedOptions

__all__ = ["Options"]


class Options(PlainOptions):
    """PopTorch's options with the replicas, device and process that poprun assigned to this instance."""

    def __init__(self, ipus_per_replica: int = 1) -> None:
        if not popdist.checkNumIpusPerReplica(ipus_per_replica):
            raise RuntimeError(
                f"popdist.poptorch.Options got ipus_per_replica={ipus_per_replica}, but poprun was started with "
                f"{popdist.getNumIpusPerReplica()}. Pass ipus_per_replica={popdist.getNumIpusPerReplica()}, or start "
                f"poprun with --ipus-per-replica {ipus_per_replica}."
            )
        super().__init__()
        self._ipus_per_replica = ipus_per_replica
        self._distributed = _GivenDistributedOptions()
        self.set(replication_factor=popdist.getNumLocalReplicas())
        if popdist.isPopdistEnvSet():
            self.createOrSet(ipu_id=popdist.getDeviceId())

    def useIpuId(self, *args: object, **kwargs: object) -> Self:
        """Raise RuntimeError: poprun assigns the devices."""
        _refuse("useIpuId")

    def replicationFactor(self, *args: object, **kwargs: object) -> Self:
        """Raise RuntimeError: poprun divides the replicas among the instances."""
        _refuse("replicationFactor")


class _GivenDistributedOptions(_DistributedOptions):
    """The process index and count that poprun assigned."""

    def __init__(self) -> None:
        super().__init__()
        self.set(num_distributed_processes=popdist.getNumInstances(), distributed_process_id=popdist.getInstanceIndex())

    def disable(self, *args: object, **kwargs: object) -> Self:
        """Raise RuntimeError: poprun sets the number of processes."""
        _refuse("Distributed.disable")

    def setEnvVarNames(self, *args: object, **kwargs: object) -> Self:
        """Raise RuntimeError: poprun uses its own variables."""
        _refuse("Distributed.setEnvVarNames")

    def configureProcessId(self, *args: object, **kwargs: object) -> Self:
        """Raise RuntimeError: poprun sets the process index."""
        _refuse("Distributed.configureProcessId")


def _refuse(method: str) -> NoReturn:
    raise RuntimeError(f"Cannot call `{method}` with popdist.poptorch.Options")
