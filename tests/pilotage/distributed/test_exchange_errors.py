from __future__ import annotations

import pytest

import pilotage
from pilotage.distributed.exchange_errors import ExplainedErrors
from pilotage.distributed.world import World
from pilotage.errors import DistributedError

WORLD = World(rank=1, size=3)
CLOSED = "Connection closed by peer [127.0.0.1]:41161"


def test_around_more_than_an_exchange_other_errors_pass_as_they_are():
    with (
        pytest.raises(RuntimeError, match=r"^mat1 and mat2") as raised,
        pilotage.explained_exchange(WORLD, "adding up gradients"),
    ):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    assert not isinstance(raised.value, DistributedError)


def test_around_more_than_an_exchange_a_lost_connection_is_explained():
    words = r"Rank 1 of 3 .* failed in adding up gradients: another instance is gone"
    with pytest.raises(DistributedError, match=words), pilotage.explained_exchange(WORLD, "adding up gradients"):
        raise RuntimeError(CLOSED)


def test_in_an_exchange_every_error_is_one_of_it():
    with pytest.raises(DistributedError, match="failed in gathering"), ExplainedErrors(WORLD, "gathering"):
        raise RuntimeError("no such tensor")
