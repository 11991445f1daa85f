"""Which of its network interfaces an instance is reached by.

Gloo takes the one that the host's own name leads to, and on many hosts that is the loopback, where no other host can
reach it. The interface on the way to the meeting place is always right.
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
    """The name of the interface on the way to an address; None where the system does not tell."""
    source = _source_address(address, port)
    if source is None:
        return None
    return next((name for _, name in socket.if_nameindex() if _address_of(name) == source), None)


def chosen_interface(address: str, port: int, environment: Mapping[str, str]) -> str | None:
    """The interface in the network that HOST_SUBNET names, or else the one on the way to the meeting place."""
    subnet = environment.get(HOST_SUBNET.name)
    return interface_towards(address, port) if subnet is None else interface_in(subnet)


def check_subnet(subnet: str) -> None:
    """Refuse what is no network."""
    _network(subnet)


def interface_in(subnet: str) -> str:
    """The name of this host's interface in a network."""
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
        f"The host {socket.gethostname()} has no address in the network {subnet} of --host-subnet. Its own are: {shown}."
    )


def _network(subnet: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(subnet, strict=False)
    except ValueError as error:
        raise OptionError(f"--host-subnet is {subnet!r}: {error}. Write it as 10.1.0.0/16.") from None


def _source_address(address: str, port: int) -> str | None:
    """What this host is called on the way there; nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
            way.connect((address, port))
            found: str = way.getsockname()[0]
            return found
    except OSError:
        return None


def _address_of(interface: str) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            answer = fcntl.ioctl(asking.fileno(), _GET_ADDRESS, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])
