import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from poptorch.enums import CommGroupType
from poptorch.options import Options


def test_device_iterations_are_stored():
    assert Options().deviceIterations(5).device_iterations == 5


@pytest.mark.parametrize("count", ["5", 5.0, None, 0, -1])
@pytest.mark.parametrize("method", ["deviceIterations", "replicationFactor"])
def test_a_count_must_be_a_whole_number_of_at_least_one(method, count):
    with pytest.raises(AssertionError, match=method):
        getattr(Options(), method)(count)


def test_the_replication_factor_is_stored():
    assert Options().replicationFactor(3).replication_factor == 3


@given(st.integers(1, 12), st.integers(-1, 14), st.sampled_from(CommGroupType))
def test_groups_must_divide_the_replicas(replicas, size, kind):
    options = Options().replicationFactor(replicas)
    if kind is CommGroupType.NoGrouping:
        options.inputReplicaGrouping(size, kind)
        assert (options.input_group_size, options.input_cgt) == (1, CommGroupType.Consecutive)
    elif kind is CommGroupType.All or size < 1 or replicas % size:
        with pytest.raises(ValueError, match="group"):
            options.inputReplicaGrouping(size, kind)
    else:
        options.inputReplicaGrouping(size, kind)
        assert (options.input_group_size, options.input_cgt) == (size, kind)


def test_groups_must_be_set_after_the_replication_factor():
    with pytest.raises(ValueError, match="Call replicationFactor first"):
        Options().inputReplicaGrouping(2, CommGroupType.Consecutive)


def test_a_group_type_must_be_an_enum():
    with pytest.raises(AssertionError, match="CommGroupType"):
        Options().inputReplicaGrouping(1, 1)


def test_broadcasting_of_buffers_is_stored():
    assert Options().broadcastBuffers(False).broadcast_buffers is False
    assert Options().broadcastBuffers(False).broadcastBuffers().broadcast_buffers is True
    with pytest.raises(AssertionError, match="Unexpected type"):
        Options().broadcastBuffers(1)


def test_a_seed_is_stored_and_seeds_torch_at_once():
    options = Options()
    assert not options.exists("random_seed")
    options.randomSeed(42)
    drawn = torch.rand(3)
    assert options.exists("random_seed")
    assert options.random_seed == 42
    torch.manual_seed(42)
    assert torch.equal(torch.rand(3), drawn)


@pytest.mark.parametrize("seed", ["42", 4.2, None])
def test_a_seed_must_be_a_whole_number(seed):
    with pytest.raises(AssertionError, match="random seed"):
        Options().randomSeed(seed)
