from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.errors import OptionError
from pilotage.options.batching import Batching, group_of
from pilotage.options.choices import ReplicaGrouping

NAMES = ["device_iterations", "gradient_accumulation", "replicas", "replicas_per_input"]


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5))
def test_a_call_consumes_the_product_of_its_loops(iterations, accumulation, feeds, shared):
    batching = Batching(
        device_iterations=iterations,
        gradient_accumulation=accumulation,
        replicas=feeds * shared,
        replicas_per_input=shared,
    )
    assert batching.micro_batches_per_call == iterations * accumulation * feeds
    assert batching.micro_batches_per_update == accumulation * feeds * shared


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, 1.0, "2", None, True])
def test_counts_are_whole_numbers_of_at_least_one(name, value):
    with pytest.raises(OptionError, match=f"{name} is {value!r}. It must be a whole number of at least 1"):
        Batching(**{name: value})


def test_replicas_have_to_fill_their_groups():
    with pytest.raises(OptionError, match=r"replicas_per_input is 3. It must divide replicas, which is 4"):
        Batching(replicas=4, replicas_per_input=3)


@given(st.integers(1, 6), st.integers(1, 6), st.sampled_from(ReplicaGrouping))
def test_each_group_has_the_same_number_of_members(groups, members, grouping):
    replicas = groups * members
    places = [group_of(replica, replicas, members, grouping) for replica in range(replicas)]
    assert all(places.count(group) == members for group in range(groups))
    neighbours = places == sorted(places)
    assert neighbours or grouping is ReplicaGrouping.ORTHOGONAL


def test_a_batching_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Batching().replicas = 2
