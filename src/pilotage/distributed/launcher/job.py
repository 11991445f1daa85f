"""A job for the launcher, and which of its processes goes to which host."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from pilotage.distributed.interfaces import check_subnet
from pilotage.distributed.launcher.remote import RemoteShell
from pilotage.distributed.world import World
from pilotage.errors import OptionError

DEVICES_PER_LINK_DOMAIN = 64
"""IPUs that are linked directly; the limit catches typos in replica counts."""

MAX_PROCESSES = 65_536
"""Catches typos in the number of instances; the largest clusters have fewer hosts."""

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A command, and how many instances of it share the replicas.

    Large because each field is an option of poprun.
    """

    command: tuple[str, ...]
    instances: int = 1
    replicas: int = 1
    """In all instances together."""

    stages_per_replica: int = 1
    """With more than one, each instance is one process per stage."""

    hosts: tuple[str, ...] = ("localhost",)
    remote_shell: RemoteShell | None = None
    """How to start commands on other hosts; None chooses srun inside a SLURM allocation, otherwise ssh."""

    mpirun_arguments: tuple[str, ...] = ()
    """Further arguments for mpirun, if it is the remote shell."""

    subnet: str | None = None
    """The network in which the hosts talk to each other, such as 10.1.0.0/16."""

    link_domains: int | None = None
    """Groups of 64 devices; None means one per host."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables to set in every instance."""

    exported: tuple[str, ...] = ()
    """Variables of this process to forward to other hosts."""

    numa_aware: bool = False
    """Bind instances to NUMA nodes in turn."""

    only_output_from: int | None = None
    """The only instance whose output is shown; None shows all."""

    max_restarts: int = 0
    """How many times to restart the job after an instance fails."""

    def __post_init__(self) -> None:
        if not self.command:
            raise OptionError("No program to start. Write it after the options: poprun [options] python3 x.py")
        for name in ("instances", "replicas", "stages_per_replica", "link_domains"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise OptionError(f"The number of {_LABELS[name]} is {getattr(self, name)}. It must be at least 1.")
        if self.instances * self.stages_per_replica > MAX_PROCESSES:
            raise OptionError(
                f"{self.instances} instances with {self.stages_per_replica} IPUs per replica are "
                f"{self.instances * self.stages_per_replica} processes. A job has at most {MAX_PROCESSES}."
            )
        if self.replicas % self.instances:
            raise OptionError(
                f"{self.replicas} replicas cannot be divided evenly among {self.instances} instances. "
                f"Choose a multiple of {self.instances} for --num-replicas."
            )
        if self.subnet is not None:
            check_subnet(self.subnet)
        if self.devices > DEVICES_PER_LINK_DOMAIN * (domains := self.link_domains or len(self.hosts)):
            raise OptionError(
                f"{self.replicas} replicas with {self.stages_per_replica} IPUs each are {self.devices} IPUs, and "
                f"{domains} link {'domain has' if domains == 1 else 'domains have'} {DEVICES_PER_LINK_DOMAIN * domains}"
                f". Choose fewer replicas, or set --num-ilds to the number of groups of {DEVICES_PER_LINK_DOMAIN}."
            )
        if self.instances % len(self.hosts):
            raise OptionError(
                f"{self.instances} instances cannot be divided evenly among {len(self.hosts)} hosts. "
                f"Choose a multiple of {len(self.hosts)} for --num-instances."
            )
        if self.only_output_from is not None and not 0 <= self.only_output_from < self.instances:
            raise OptionError(
                f"--only-output-from-instance is {self.only_output_from}. "
                f"It must be between 0 and {self.instances - 1}."
            )
        if self.max_restarts < 0:
            raise OptionError(f"--max-restarts is {self.max_restarts}. It must be at least 0.")

    @property
    def devices(self) -> int:
        """Devices needed to give each stage of each replica its own."""
        return self.replicas * self.stages_per_replica

    @property
    def instances_per_host(self) -> int:
        """Instances on each host."""
        return self.instances // len(self.hosts)

    @property
    def on_one_host(self) -> bool:
        """Whether all instances are on this machine."""
        return all(map(is_here, self.hosts))

    def processes(self, address: str, port: int, directory: str | None = None) -> list[JobProcess]:
        """All processes, which meet at this address or in this directory; the stages of an instance are neighbours."""
        stages = range(self.stages_per_replica) if self.stages_per_replica > 1 else [None]
        return [
            self._process(rank, stage, address, port, directory) for rank in range(self.instances) for stage in stages
        ]

    def _process(self, rank: int, stage: int | None, address: str, port: int, directory: str | None) -> JobProcess:
        world = World(
            rank=rank,
            size=self.instances,
            local_rank=rank % self.instances_per_host,
            replicas_per_instance=self.replicas // self.instances,
            stages_per_replica=self.stages_per_replica,
            stage=stage,
            address=address,
            port=port,
            one_host=directory is not None,
            directory=directory,
            launcher="poprun",
        )
        return JobProcess(host=self.hosts[rank // self.instances_per_host], world=world)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobProcess:
    """One process of a job: its host, and its part in the world."""

    host: str
    world: World

    @property
    def name(self) -> str:
        """Its name in messages."""
        stage = self.world.stage
        return f"Instance {self.world.rank}" + ("" if stage is None else f", stage {stage}")

    @property
    def shows_output(self) -> bool:
        """Whether its output is shown; all stages of an instance print the same, so only the first one is."""
        return not self.world.stage


def is_here(host: str) -> bool:
    """Whether a host is this machine."""
    return host in LOCAL_NAMES or host == socket.gethostname()


_LABELS = {
    "instances": "instances",
    "replicas": "replicas",
    "stages_per_replica": "IPUs per replica",
    "link_domains": "link domains",
}
