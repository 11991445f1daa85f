"""How one call is split into micro-batches, and what replicas share."""

from __future__ import annotations

from typing import Self

import torch

from poptorch._errors import require
from poptorch._options_impl import OptionsDict
from poptorch.enums import CommGroupType


class BatchingOptions(OptionsDict):
    """The part of the options that says what one call consumes."""

    def deviceIterations(self, device_iterations: int) -> Self:
        """Times the device loops before it returns to the host."""
        _check_count("deviceIterations", device_iterations)
        return self.set(device_iterations=device_iterations)

    def replicationFactor(self, replication_factor: int) -> Self:
        """Copies of the model that share each update."""
        _check_count("replicationFactor", replication_factor)
        return self.set(replication_factor=replication_factor)

    def inputReplicaGrouping(self, input_group_size: int, input_cgt: CommGroupType) -> Self:
        """Feed groups of replicas the same data; to be called after replicationFactor."""
        require(
            isinstance(input_cgt, CommGroupType), f"The group type must be a poptorch.CommGroupType, not {input_cgt!r}."
        )
        if input_cgt is CommGroupType.All:
            raise ValueError("Replicas cannot be grouped by CommGroupType.All. Give replicationFactor as the size.")
        if input_cgt is CommGroupType.NoGrouping:
            return self.set(input_group_size=1, input_cgt=CommGroupType.Consecutive)
        if input_group_size < 1 or input_group_size > self.replication_factor:
            raise ValueError(
                f"The input group size {input_group_size} is not between 1 and the replication factor "
                f"{self.replication_factor}. Call replicationFactor first."
            )
        if self.replication_factor % input_group_size:
            raise ValueError(
                f"The input group size {input_group_size} does not divide the replication factor "
                f"{self.replication_factor}."
            )
        return self.set(input_group_size=input_group_size, input_cgt=input_cgt)

    def broadcastBuffers(self, broadcast_buffers: bool = True) -> Self:
        """Keep buffers equal in all replicas, and refuse models that write to their buffers."""
        return self.set(broadcast_buffers=broadcast_buffers)

    def randomSeed(self, random_seed: int) -> Self:
        """Seed the device's random streams and torch's generator."""
        require(isinstance(random_seed, int), f"A random seed must be a whole number, not {random_seed!r}.")
        self.createOrSet(random_seed=random_seed)
        torch.manual_seed(random_seed)
        return self


def _check_count(name: str, count: int) -> None:
    require(isinstance(count, int) and count > 0, f"{name} must be a whole number of at least 1, not {count!r}.")
