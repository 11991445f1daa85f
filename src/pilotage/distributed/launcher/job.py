"""What is to be started, and where each instance of it goes."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from pilotage.distributed.interfaces import check_subnet
from pilotage.distributed.launcher.remote import RemoteShell
from pilotage.distributed.world import World
from pilotage.errors import OptionError

DEVICES_PER_LINK_DOMAIN = 64
"""As many IPUs are linked directly; a limit that a slip of the pen does not get over."""

MOST_PROCESSES = 65_536
"""Catches typos in the number of instances; the largest clusters have fewer hosts."""

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A command, and how many instances of it share the replicas."""

    command: tuple[str, ...]
    instances: int = 1
    replicas: int = 1
    """Of all instances together."""

    stages_per_replica: int = 1
    """With several, each instance is one process for each stage."""

    hosts: tuple[str, ...] = ("localhost",)
    remote_shell: RemoteShell | None = None
    """What carries commands to other hosts; without a choice, what is usual where this is run."""

    mpirun_arguments: tuple[str, ...] = ()
    """What mpirun is told besides, where it is used."""

    subnet: str | None = None
    """The network by which the hosts talk, such as 10.1.0.0/16."""

    link_domains: int | None = None
    """How many groups of 64 devices there are; one for each host unless said otherwise."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """What every instance gets besides its place in the world."""

    exported: tuple[str, ...] = ()
    """Variables of this process that instances on other hosts get too."""

    numa_aware: bool = False
    """Binds instances to NUMA nodes in turn."""

    only_output_from: int | None = None
    """The one instance whose output is shown."""

    max_restarts: int = 0
    """How often the job is started again after an instance has failed."""

    def __post_init__(self) -> None:
        if not self.command:
            raise OptionError(
                "There is no program to start. Write it behind the options: poprun [options] python3 x.py"
            )
        for name in ("instances", "replicas", "stages_per_replica", "link_domains"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise OptionError(f"The number of {_SHOWN[name]} is {getattr(self, name)}. It has to be at least 1.")
        if self.instances * self.stages_per_replica > MOST_PROCESSES:
            raise OptionError(
                f"{self.instances} instances with {self.stages_per_replica} IPUs per replica are "
                f"{self.instances * self.stages_per_replica} processes. A job has at most {MOST_PROCESSES}."
            )
        if self.replicas % self.instances:
            raise OptionError(
                f"{self.replicas} replicas cannot be divided evenly among {self.instances} instances. Choose a multiple of "
                f"{self.instances} for --num-replicas."
            )
        if self.subnet is not None:
            check_subnet(self.subnet)
        if self.devices > DEVICES_PER_LINK_DOMAIN * (domains := self.link_domains or len(self.hosts)):
            raise OptionError(
                f"{self.replicas} replicas with {self.stages_per_replica} IPUs each are {self.devices} IPUs, and {domains} "
                f"link {'domain has' if domains == 1 else 'domains have'} {DEVICES_PER_LINK_DOMAIN * domains}. Choose fewer "
                f"replicas, or say by --num-ilds how many groups of {DEVICES_PER_LINK_DOMAIN} there are."
            )
        if self.instances % len(self.hosts):
            raise OptionError(
                f"{self.instances} instances cannot be divided evenly among {len(self.hosts)} hosts. Choose a multiple of "
                f"{len(self.hosts)} for --num-instances."
            )
        if self.only_output_from is not None and not 0 <= self.only_output_from < self.instances:
            raise OptionError(
                f"--only-output-from-instance is {self.only_output_from}. It has to lie between 0 and {self.instances - 1}."
            )
        if self.max_restarts < 0:
            raise OptionError(f"--max-restarts is {self.max_restarts}. It has to be at least 0.")

    @property
    def devices(self) -> int:
        """How many devices the job would have if each stage of each replica had one of its own."""
        return self.replicas * self.stages_per_replica

    @property
    def instances_per_host(self) -> int:
        """How many instances each host gets."""
        return self.instances // len(self.hosts)

    @property
    def on_one_host(self) -> bool:
        """Whether all instances are on this machine."""
        return all(map(is_here, self.hosts))

    def places(self, address: str, port: int, directory: str | None = None) -> list[Place]:
        """Where each process goes, if they meet at this address or in this directory: the stages of one instance after another."""
        stages = range(self.stages_per_replica) if self.stages_per_replica > 1 else [None]
        return [
            self._place(rank, stage, address, port, directory) for rank in range(self.instances) for stage in stages
        ]

    def _place(self, rank: int, stage: int | None, address: str, port: int, directory: str | None) -> Place:
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
        return Place(host=self.hosts[rank // self.instances_per_host], world=world)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """One process: its host, and its place in the world."""

    host: str
    world: World

    @property
    def name(self) -> str:
        """What the process is called in messages."""
        stage = self.world.stage
        return f"Instance {self.world.rank}" + ("" if stage is None else f", stage {stage}")

    @property
    def speaks(self) -> bool:
        """Whether it says what its instance says; the other stages would say the same again."""
        return not self.world.stage


def is_here(host: str) -> bool:
    """Whether a host is this machine."""
    return host in LOCAL_NAMES or host == socket.gethostname()


_SHOWN = {
    "instances": "instances",
    "replicas": "replicas",
    "stages_per_replica": "IPUs per replica",
    "link_domains": "link domains",
}
