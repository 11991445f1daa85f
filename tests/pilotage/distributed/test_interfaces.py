from __future__ import annotations

import socket

import pytest

from pilotage.distributed.interfaces import address_in, check_subnet, chosen_interface, interface_towards
from pilotage.errors import OptionError


def test_this_host_is_reached_by_its_loopback():
    assert interface_towards("127.0.0.1", 1) in {name for _, name in socket.if_nameindex()}


def test_an_invalid_address_has_no_interface():
    assert interface_towards("a.invalid", 1) is None
    assert interface_towards("::1", 1) is None


def test_a_named_network_takes_precedence_over_the_route_to_the_rendezvous():
    loopback = interface_towards("127.0.0.1", 1)
    assert chosen_interface("127.0.0.1", 1, {}) == loopback
    assert chosen_interface("a.invalid", 1, {"PILOTAGE_HOST_SUBNET": "127.0.0.0/8"}) == loopback
    assert address_in("127.0.0.0/8") == "127.0.0.1"


def test_a_network_without_this_host_is_refused_with_its_addresses():
    with pytest.raises(OptionError, match=r"no address in the network 203\.0\.113\.0/24.*127\.0\.0\.1"):
        chosen_interface("127.0.0.1", 1, {"PILOTAGE_HOST_SUBNET": "203.0.113.0/24"})


@pytest.mark.parametrize("subnet", ["", "eth0", "10.1.0.0/99", "10.1.0/16"])
def test_an_invalid_network_is_refused(subnet):
    with pytest.raises(OptionError, match="--host-subnet is"):
        check_subnet(subnet)
