from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pilotage.execution.random_streams import RandomStreams, seeds_for

CPU = torch.device("cpu")


def drawn(streams, replica=0):
    with streams.of_replica(replica):
        return torch.rand(4).tolist()


def test_without_seeds_the_stream_is_torchs_own():
    streams = RandomStreams(CPU)
    assert streams.shared
    torch.manual_seed(3)
    first = drawn(streams)
    torch.manual_seed(3)
    assert torch.rand(4).tolist() == first


def test_a_seeded_stream_continues_and_does_not_affect_torchs_generator():
    streams = RandomStreams(CPU, [5])
    assert not streams.shared
    torch.manual_seed(1)
    outside = torch.get_rng_state()
    first, second = drawn(streams), drawn(streams)
    assert torch.equal(torch.get_rng_state(), outside)
    torch.manual_seed(5)
    assert [torch.rand(4).tolist(), torch.rand(4).tolist()] == [first, second]


def test_replicas_have_independent_streams():
    one, other = RandomStreams(CPU, [5, 6]), RandomStreams(CPU, [5, 6])
    assert [drawn(one, 0), drawn(one, 1), drawn(one, 0)] == [
        drawn(other, 0),
        *reversed([drawn(other, 0), drawn(other, 1)]),
    ]


def test_a_stream_does_not_advance_if_an_error_is_raised():
    streams = RandomStreams(CPU, [5])
    torch.manual_seed(1)
    outside = torch.get_rng_state()
    before = streams.states

    def fail():
        with streams.of_replica(0):
            torch.rand(4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.equal(torch.get_rng_state(), outside)
    assert torch.equal(streams.states[0], before[0])


@pytest.mark.parametrize("seeds", [[], [5], [5, 6]])
def test_stream_states_can_be_saved_and_restored(seeds):
    streams = RandomStreams(CPU, seeds)
    states = streams.states
    first = [drawn(streams, replica) for replica in range(max(1, len(seeds)))]
    streams.states = states
    assert [drawn(streams, replica) for replica in range(max(1, len(seeds)))] == first


@given(st.integers(-(2**40), 2**63 - 1), st.integers(1, 64))
def test_replicas_get_different_valid_seeds_and_the_first_is_the_users(seed, replicas):
    seeds = seeds_for(seed, replicas)
    assert len(set(seeds)) == len(seeds) == replicas
    assert seeds[0] % 2**63 == seed % 2**63
    for value in seeds:
        torch.Generator().manual_seed(value)


def test_without_a_seed_one_replica_shares_torchs_generator_and_several_start_from_its_seed():
    assert seeds_for(None, 1) == []
    torch.manual_seed(11)
    assert seeds_for(None, 3) == seeds_for(11, 3)
