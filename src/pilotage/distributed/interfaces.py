"""The network interface of an instance.

Gloo takes the interface of the host's own name, which on many hosts is the loopback, where no other host can reach it.
The interface on the route to the rendezvous address is always right.
"""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from collections.abc import Mapping

from pilotage.errors import OptionError
from pilotage.options.environment import HOST_SUBNET

_GET_ADDRESS = 0x8915
"""ioctl's SIOCGIFADDR."""


def interface_towards(address: str, port: int) -> str | None:
    """The interface on the route to an address; None if unknown."""
    source = _source_address(address, port)
    if source is None:
        return None
    return next((name for _, name in socket.if_nameindex() if _address_of(name) == source), None)


def chosen_interface(address: str, port: int, environment: Mapping[str, str]) -> str | None:
    """The interface in the network of PILOTAGE_HOST_SUBNET, or else on the route to the rendezvous address."""
    subnet = environment.get(HOST_SUBNET.name)
    return interface_towards(address, port) if subnet is None else interface_in(subnet)


def check_subnet(subnet: str) -> None:
    """Raise if the text is not a network."""
    _network(subnet)


def interface_in(subnet: str) -> str:
    """This host's interface in a network."""
    return _interface_in(subnet)[0]


def address_in(subnet: str) -> str:
    """This host's address in a network."""
    return _interface_in(subnet)[1]


def _interface_in(subnet: str) -> tuple[str, str]:
    network = _network(subnet)
    addresses = [(name, _address_of(name)) for _, name in socket.if_nameindex()]
    for name, found in addresses:
        if found is not None and ipaddress.ip_address(found) in network:
            return name, found
    shown = ", ".join(f"{name} {found}" for name, found in addresses if found is not None)
    raise OptionError(
        f"The host {socket.gethostname()} has no address in the network {subnet} of --host-subnet. "
        f"Its addresses are: {shown}."
    )


def _network(subnet: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(subnet, strict=False)
    except ValueError as error:
        raise OptionError(f"--host-subnet is {subnet!r}: {error}. Write it as 10.1.0.0/16.") from None


def _source_address(address: str, port: int) -> str | None:
    """This host's address on the route to another one; nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((address, port))
            found: str = probe.getsockname()[0]
            return found
    except OSError:
        return None


def _address_of(interface: str) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), _GET_ADDRESS, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])
