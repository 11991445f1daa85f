"""Processes that work learn that another one has given up."""

from __future__ import annotations

import time

import pytest

from pilotage.distributed.called_off import CalledOff
from pilotage.distributed.peers import peers_here


def seconds_until_called_off():
    peers, notice = peers_here(), CalledOff("the search")
    peers.wait_for_all()
    assert not notice.is_announced
    peers.wait_for_all()
    if peers.world.rank == 1:
        notice.announce()
    begun = time.monotonic()
    while not notice.is_announced and time.monotonic() < begun + 60:
        time.sleep(0.01)
    assert not CalledOff("something else").is_announced
    peers.wait_for_all()
    return time.monotonic() - begun


@pytest.mark.slow
def test_all_processes_see_the_notice_of_one(world):
    assert max(world(seconds_until_called_off, 2)) < 30
