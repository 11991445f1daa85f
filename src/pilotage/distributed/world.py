"""The instances of a job, and this process among them."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.errors import OptionError

NO_LAUNCHER = "nobody"
"""The name in place of a launcher's if none has started this process."""


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """All instances of a job, as seen from one of them."""

    rank: int = 0
    """This instance, counted from 0."""

    size: int = 1
    """The number of instances."""

    local_rank: int = 0
    """This instance among those of its host."""

    replicas_per_instance: int = 1
    """Copies of the model in each instance; 1 if the launcher does not say."""

    stages_per_replica: int = 1
    """Devices that one copy of the model uses; 1 if the launcher does not say."""

    stage: int | None = None
    """The stage of this process if each instance is one process per stage, otherwise None."""

    address: str | None = None
    """The host of instance 0, where all instances meet; None if the launcher does not say."""

    port: int | None = None
    """The port on that host."""

    one_host: bool = False
    """Whether all processes are known to be on this host."""

    directory: str | None = None
    """The private directory in which the processes of a job on one host meet, if the launcher created one."""

    launcher: str = NO_LAUNCHER
    """The launcher that described this world; "nobody" without one."""

    def __post_init__(self) -> None:
        for name in ("size", "replicas_per_instance", "stages_per_replica"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} is {getattr(self, name)}{self.set_by}. It must be at least 1.")
        if not 0 <= self.rank < self.size:
            raise OptionError(f"The rank is {self.rank}{self.set_by}. It must be between 0 and {self.size - 1}.")
        if self.stage is not None and not 0 <= self.stage < self.stages_per_replica:
            raise OptionError(
                f"The stage is {self.stage}{self.set_by}. It must be between 0 and {self.stages_per_replica - 1}."
            )
        if self.local_rank < 0:
            raise OptionError(f"The local rank is {self.local_rank}{self.set_by}. It must be at least 0.")
        if self.port is not None and not 0 < self.port < 1 << 16:
            raise OptionError(f"The port is {self.port}{self.set_by}. It must be between 1 and 65535.")

    @property
    def set_by(self) -> str:
        """The launcher in parentheses, for messages about its numbers; empty without a launcher."""
        return "" if self.launcher == NO_LAUNCHER else f" (set by {self.launcher})"

    @property
    def replicas(self) -> int:
        """Copies of the model in the whole world."""
        return self.size * self.replicas_per_instance

    @property
    def first_replica(self) -> int:
        """The number of this instance's first replica, counted over the whole world."""
        return self.rank * self.replicas_per_instance

    @property
    def processes_per_instance(self) -> int:
        """Processes of each instance."""
        return 1 if self.stage is None else self.stages_per_replica

    @property
    def processes(self) -> int:
        """Processes in the whole world."""
        return self.size * self.processes_per_instance

    @property
    def process(self) -> int:
        """The number of this process, counted over the whole world; those of one instance are neighbours."""
        return self.process_of(self.rank, self.stage or 0)

    def process_of(self, rank: int, stage: int) -> int:
        """The number of the process of a stage of an instance."""
        return rank * self.processes_per_instance + stage

    @property
    def label(self) -> str:
        """The name of this process in messages."""
        return f"Rank {self.rank} of {self.size}" + ("" if self.stage is None else f", stage {self.stage}")

    def name_of(self, process: int) -> str:
        """The name of another process in messages."""
        rank, stage = divmod(process, self.processes_per_instance)
        return f"rank {rank}" + ("" if self.stage is None else f", stage {stage}")
