"""How the processes of a job form the default group of torch.distributed.

On one host they meet through a file in a private directory. poprun creates that directory. Under other launchers the
first process creates it and sends its path through MASTER_ADDR and MASTER_PORT; nothing else uses that socket, which is
closed as soon as all processes have arrived. On several hosts they meet at MASTER_ADDR and MASTER_PORT.
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
from torch.distributed import FileStore, HashStore, PrefixStore, Store, TCPStore  # type: ignore[attr-defined]

from pilotage.distributed.exchange_errors import ExplainedErrors
from pilotage.distributed.handshake import authenticate_world
from pilotage.distributed.interfaces import chosen_interface
from pilotage.distributed.job_directory import JobDirectory
from pilotage.distributed.shutdown import wait_at_exit
from pilotage.distributed.world import World
from pilotage.errors import DistributedError
from pilotage.options.environment import exchange_timeout

__all__ = ["join_world", "rendezvous"]

_RENDEZVOUS_COUNT = itertools.count()
"""Processes may meet again after they left; each rendezvous uses its own names in the store."""

_LOOPBACK = "127.0.0.1"


def join_world(world: World, backend: str = "gloo") -> None:
    """Make all processes of a world the default group of torch.distributed, with the exchange timeout.

    Use it instead of ``torch.distributed.init_process_group``: on one host, other users can neither join nor listen.
    """
    rendezvous(world, backend, exchange_timeout())


def rendezvous(world: World, backend: str, timeout: timedelta) -> None:
    """Meet all other processes of the world."""
    number = next(_RENDEZVOUS_COUNT)
    if world.processes == 1:
        _init_process_group(world, backend, HashStore(), timeout)
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
            _init_process_group(world, backend, PrefixStore(f"meeting {number}", store), timeout)


def _join_through(directory: JobDirectory, number: int, world: World, backend: str, timeout: timedelta) -> None:
    # With the port in the name, a process that is redirected to another job of this user does not disturb it.
    file = directory.path / f"store-{number}-{world.port}-{world.processes}"
    _choose_interface(_LOOPBACK, 1)
    _init_process_group(world, backend, FileStore(str(file), world.processes), timeout)
    authenticate_world(directory.key)


def _init_process_group(world: World, backend: str, store: Store, timeout: timedelta) -> None:
    wait_at_exit()
    dist.init_process_group(backend, store=store, rank=world.process, world_size=world.processes, timeout=timeout)


def _choose_interface(address: str, port: int) -> None:
    interface = chosen_interface(address, port, os.environ)
    if interface is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)


def _agreed_directory(store: Store, number: int, world: World) -> JobDirectory:
    """The directory that the first process creates; the others receive its path."""
    name = f"directory of meeting {number}"
    if world.process != 0:
        return JobDirectory.at(store.get(name).decode(errors="replace"))
    directory = JobDirectory.make()
    # Unlike atexit, this also runs in processes started by multiprocessing.
    Finalize(None, directory.remove, exitpriority=0)
    store.set(name, str(directory.path))
    return directory


def _network_store(world: World, address: str, port: int, timeout: timedelta) -> Store:
    """The store of the first process, or of torchrun."""
    # torchrun keeps its store across restarts, with what earlier processes left in it.
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
        # The store closes the socket.
        master_listen_fd=None if listening is None else listening.detach(),
    )
    return PrefixStore(prefix, kept)


def _listening_socket(address: str, port: int) -> socket.socket | None:
    """A socket that listens only at this address; None for a name, or for an address that is not this host's.

    Hosts may resolve each other's names to different addresses, so a name does not determine where to listen.
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
        raise RuntimeError(f"cannot listen at {address}:{port}: {os.strerror(error.errno or 0).lower()}") from error
    return listening


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _address_and_port(world: World) -> tuple[str, int]:
    if world.address is None or world.port is None:
        raise DistributedError(
            f"This is rank {world.rank} of {world.size}{world.set_by}, but the rendezvous address is unknown. "
            "Set MASTER_ADDR to the host of rank 0 and MASTER_PORT to a free port there, or start the job with poprun."
        )
    return world.address, world.port
