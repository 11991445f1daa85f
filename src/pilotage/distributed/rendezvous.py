"""How the processes of a job come together as the default group of torch.distributed.

On one host they meet through a file in a directory that only their user can enter. poprun makes that directory. Under other
launchers the first process makes it, and tells the others its path at MASTER_ADDR and MASTER_PORT; nothing else goes by
that socket, and it is closed as soon as all have come. On several hosts they meet at MASTER_ADDR and MASTER_PORT.
"""

from __future__ import annotations

import errno
import ipaddress
import itertools
import os
import socket
from datetime import timedelta
from multiprocessing.util import Finalize

import torch.distributed as dist
from torch._C._distributed_c10d import FileStore, HashStore, PrefixStore, Store, TCPStore

from pilotage.distributed.exchange_errors import ExplainedErrors
from pilotage.distributed.handshake import authenticate_world
from pilotage.distributed.interfaces import chosen_interface
from pilotage.distributed.job_directory import JobDirectory
from pilotage.distributed.world import World
from pilotage.errors import DistributedError
from pilotage.options.environment import exchange_timeout

__all__ = ["join_world", "rendezvous"]

_RENDEZVOUS_COUNT = itertools.count()
"""Processes that part can meet again; each meeting has names of its own in what they share."""

_LOOPBACK = "127.0.0.1"


def join_world(world: World, backend: str = "gloo") -> None:
    """Make all processes of a world the default group of torch.distributed, with the timeout of exchanges.

    Use it in place of ``torch.distributed.init_process_group``: on one host other users can neither join nor listen.
    """
    rendezvous(world, backend, exchange_timeout())


def rendezvous(world: World, backend: str, timeout: timedelta) -> None:
    """Come together with all other processes of the world."""
    number = next(_RENDEZVOUS_COUNT)
    if world.processes == 1:
        _begin(world, backend, HashStore(), timeout)
        return
    if world.directory is not None:
        with ExplainedErrors(world, "meeting the others"):
            _join_through(JobDirectory.at(world.directory), number, world, backend, timeout)
        return
    address, port = _address_and_port(world)
    with ExplainedErrors(world, "meeting the others", port):
        store = _network_store(world, address, port, timeout)
        if world.one_host:
            _join_through(_agreed_directory(store, number, world), number, world, backend, timeout)
        else:
            _choose_interface(address, port)
            _begin(world, backend, PrefixStore(f"meeting {number}", store), timeout)


def _join_through(directory: JobDirectory, number: int, world: World, backend: str, timeout: timedelta) -> None:
    # The port belongs to the name so that a process that was led to another job of this user does not disturb it.
    file = directory.path / f"store-{number}-{world.port}-{world.processes}"
    _choose_interface(_LOOPBACK, 1)
    _begin(world, backend, FileStore(str(file), world.processes), timeout)
    authenticate_world(directory.key)


def _begin(world: World, backend: str, store: Store, timeout: timedelta) -> None:
    dist.init_process_group(backend, store=store, rank=world.process, world_size=world.processes, timeout=timeout)


def _choose_interface(address: str, port: int) -> None:
    interface = chosen_interface(address, port, os.environ)
    if interface is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)


def _agreed_directory(store: Store, number: int, world: World) -> JobDirectory:
    """The directory that the first process makes; the others are told its path."""
    name = f"directory of meeting {number}"
    if world.process != 0:
        return JobDirectory.at(store.get(name).decode(errors="replace"))
    directory = JobDirectory.make()
    # Unlike atexit, this also runs in processes that multiprocessing has started.
    Finalize(None, directory.remove, exitpriority=0)
    store.set(name, str(directory.path))
    return directory


def _network_store(world: World, address: str, port: int, timeout: timedelta) -> Store:
    """A store that the first process keeps, or torchrun."""
    # torchrun keeps its store when it starts processes again, with what those that are gone have left in it.
    prefix = f"pilotage attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    kept_by_launcher = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if world.one_host and not kept_by_launcher and not _is_loopback(address):
        address = _LOOPBACK
    if world.process != 0 or kept_by_launcher:
        return PrefixStore(prefix, TCPStore(address, port, is_master=False, timeout=timeout))
    listening = _listening_socket(address, port)
    kept = TCPStore(
        address,
        port,
        is_master=True,
        timeout=timeout,
        wait_for_workers=False,
        # The store closes it.
        master_listen_fd=None if listening is None else listening.detach(),
    )
    return PrefixStore(prefix, kept)


def _listening_socket(address: str, port: int) -> socket.socket | None:
    """A socket that can be reached at this address only; None where that is a name, or not an address of this host.

    Hosts may know each other's names by different addresses, so that a name says nothing about where to listen.
    """
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    except ValueError:
        return None
    listening = socket.socket(family)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(socket.SOMAXCONN)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRNOTAVAIL:
            return None
        raise RuntimeError(
            f"{address}:{port} cannot be listened at: {os.strerror(error.errno or 0).lower()}"
        ) from error
    return listening


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _address_and_port(world: World) -> tuple[str, int]:
    if world.address is None or world.port is None:
        raise DistributedError(
            f"This is rank {world.rank} of {world.size}, by {world.launcher}, but where the instances meet is not known. "
            "Set MASTER_ADDR to the host of rank 0 and MASTER_PORT to a free port there, or start the job by poprun."
        )
    return world.address, world.port
