"""PopTorch's options as poprun decides them."""

from __future__ import annotations

from typing import NoReturn, Self

import popdist
from poptorch.options import Options as PlainOptions
from poptorch.options.distributed import _DistributedOptions

__all__ = ["Options"]


class Options(PlainOptions):
    """PopTorch's options, whose replicas, device and process are those that poprun has given to this instance."""

    def __init__(self, ipus_per_replica: int = 1) -> None:
        if not popdist.checkNumIpusPerReplica(ipus_per_replica):
            raise RuntimeError(
                f"popdist.poptorch.Options got ipus_per_replica={ipus_per_replica}, but poprun was told "
                f"{popdist.getNumIpusPerReplica()}. Give ipus_per_replica={popdist.getNumIpusPerReplica()}, or start poprun with "
                f"--ipus-per-replica {ipus_per_replica}."
            )
        super().__init__()
        self._ipus_per_replica = ipus_per_replica
        self._distributed = _GivenDistributedOptions()
        self.set(replication_factor=popdist.getNumLocalReplicas())
        if popdist.isPopdistEnvSet():
            self.createOrSet(ipu_id=popdist.getDeviceId())

    def useIpuId(self, ipu_id: int) -> Self:
        """Refuse: poprun gives out the devices."""
        _refuse("useIpuId")

    def replicationFactor(self, replication_factor: int) -> Self:
        """Refuse: poprun divides the replicas among the instances."""
        _refuse("replicationFactor")


class _GivenDistributedOptions(_DistributedOptions):
    """The place among all processes that poprun has given to this one."""

    def __init__(self) -> None:
        super().__init__()
        self.set(num_distributed_processes=popdist.getNumInstances(), distributed_process_id=popdist.getInstanceIndex())

    def disable(self) -> Self:
        """Refuse: poprun decides how many processes there are."""
        _refuse("Distributed.disable")

    def setEnvVarNames(self, var_num_processes: str, var_process_id: str) -> Self:
        """Refuse: poprun has variables of its own."""
        _refuse("Distributed.setEnvVarNames")

    def configureProcessId(self, process_id: int, num_processes: int) -> Self:
        """Refuse: poprun numbers the processes."""
        _refuse("Distributed.configureProcessId")


def _refuse(method: str) -> NoReturn:
    raise RuntimeError(f"Cannot call `{method}` with popdist.poptorch.Options")
