from __future__ import annotations

import pytest

import pilotage
from pilotage.distributed.exchange_errors import ExplainedErrors
from pilotage.distributed.world import World
from pilotage.errors import DistributedError

WORLD = World(rank=1, size=3)
CLOSED = "Connection closed by peer [127.0.0.1]:41161"


def test_other_errors_around_an_exchange_pass_unchanged():
    with (
        pytest.raises(RuntimeError, match=r"^mat1 and mat2") as raised,
        pilotage.explained_exchange(WORLD, "adding up gradients"),
    ):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    assert not isinstance(raised.value, DistributedError)


def test_a_lost_connection_around_an_exchange_is_explained():
    words = r"Rank 1 of 3 .* failed in adding up gradients: another instance is gone"
    with pytest.raises(DistributedError, match=words), pilotage.explained_exchange(WORLD, "adding up gradients"):
        raise RuntimeError(CLOSED)


def test_every_error_inside_an_exchange_is_explained():
    with pytest.raises(DistributedError, match="failed in gathering"), ExplainedErrors(WORLD, "gathering"):
        raise RuntimeError("no such tensor")
