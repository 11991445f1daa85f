"""How a host call is divided into micro-batches."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.errors import OptionError
from pilotage.options.choices import ReplicaGrouping


@dataclass(frozen=True, kw_only=True, slots=True)
class Batching:
    """How many micro-batches one host call consumes, and in which loops.

    A call runs ``device_iterations`` x ``gradient_accumulation`` x ``replicas`` micro-batches, nested in this order;
    the weights are updated once per device iteration.
    """

    device_iterations: int = 1
    """Times the device loops before it returns to the host."""

    gradient_accumulation: int = 1
    """Micro-batches per replica whose gradients are accumulated before one update."""

    replicas: int = 1
    """Copies of the model that share each update."""

    instances: int = 1
    """Host processes that share each update, each with the same number of replicas."""

    replicas_per_input: int = 1
    """Replicas that get the same data."""

    input_grouping: ReplicaGrouping = ReplicaGrouping.CONSECUTIVE
    """Which replicas these are."""

    def __post_init__(self) -> None:
        for name in ("device_iterations", "gradient_accumulation", "replicas", "instances", "replicas_per_input"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise OptionError(f"{name} is {value!r}. It must be a whole number of at least 1.")
        if self.replicas % self.replicas_per_input:
            raise OptionError(
                f"replicas_per_input is {self.replicas_per_input}. It must divide replicas, which is {self.replicas}."
            )

    def input_of(self, replica: int) -> int:
        """Which micro-batch of a round a replica reads."""
        return group_of(replica, self.replicas, self.replicas_per_input, self.input_grouping)

    @property
    def micro_batches_per_call(self) -> int:
        """The number of micro-batches into which a call cuts its inputs."""
        return self.device_iterations * self.gradient_accumulation * (self.replicas // self.replicas_per_input)

    @property
    def micro_batches_per_update(self) -> int:
        """Micro-batches of all instances whose gradients go into one update."""
        return self.gradient_accumulation * self.replicas * self.instances


def group_of(replica: int, replicas: int, members: int, grouping: ReplicaGrouping) -> int:
    """The group of a replica if each group has ``members`` replicas."""
    if grouping is ReplicaGrouping.CONSECUTIVE:
        return replica // members
    return replica % (replicas // members)
