from __future__ import annotations

import socket

from pilotage.distributed.interfaces import interface_towards


def test_this_host_is_reached_by_its_loopback():
    assert interface_towards("127.0.0.1", 1) in {name for _, name in socket.if_nameindex()}


def test_an_address_that_cannot_be_has_no_interface():
    assert interface_towards("a.invalid", 1) is None
    assert interface_towards("::1", 1) is None
