"""Which of its network interfaces an instance is reached by.

Gloo takes the one that the host's own name leads to, and on many hosts that is the loopback, where no other host can
reach it. The interface on the way to the meeting place is always right.
"""

from __future__ import annotations

import fcntl
import socket
import struct

_GET_ADDRESS = 0x8915
"""ioctl's SIOCGIFADDR."""


def interface_towards(address: str, port: int) -> str | None:
    """The name of the interface on the way to an address; None where the system does not tell."""
    source = _source_address(address, port)
    if source is None:
        return None
    return next((name for _, name in socket.if_nameindex() if _address_of(name) == source), None)


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
