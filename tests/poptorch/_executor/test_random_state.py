"""Random streams that are read, set and reproduced."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch


def noise(x):
    return x + torch.rand_like(x)


def wrapped(seed=None, replicas=1, iterations=1):
    options = poptorch.Options().replicationFactor(replicas).deviceIterations(iterations)
    return poptorch.inferenceModel(noise, options if seed is None else options.randomSeed(seed))


X = torch.zeros(8, 4)


def test_a_seed_repeats_everything():
    first, second, other = wrapped(3), wrapped(3), wrapped(4)
    drawn = [first(X) for _ in range(3)]
    assert all(torch.equal(second(X), each) for each in drawn)
    assert not torch.equal(other(X), drawn[0])
    assert not torch.equal(drawn[0], drawn[1])


def test_a_seed_also_seeds_torch_at_once():
    poptorch.Options().randomSeed(11)
    drawn = torch.rand(3)
    torch.manual_seed(11)
    assert torch.equal(torch.rand(3), drawn)


def test_nothing_on_the_host_disturbs_the_stream_of_a_seed():
    quiet, disturbed = wrapped(3), wrapped(3)
    for _ in range(3):
        torch.rand(100)
        torch.manual_seed(0)
        assert torch.equal(disturbed(X), quiet(X))


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("seed", [None, 5])
def test_a_random_state_can_be_restored(seed, replicas):
    model = wrapped(seed, replicas)
    model(X)
    state = model.rng_state
    expected = [model(X) for _ in range(2)]
    model.rng_state = state
    assert all(torch.equal(model(X), each) for each in expected)


def test_a_random_state_is_a_list_that_starts_with_the_seed():
    model = wrapped(123)
    model(X)
    state = model.rng_state
    assert type(state) is list
    assert {type(number) for number in state} == {int}
    assert state[0] == 123
    torch.manual_seed(77)
    unseeded = wrapped()
    unseeded(X)
    assert unseeded.rng_state[0] == 77


def test_a_state_moves_from_one_model_to_another():
    first, second = wrapped(1), wrapped(2)
    first(X)
    second(X)
    second.rng_state = first.rng_state
    assert torch.equal(second(X), first(X))


def test_a_state_of_another_length_is_refused():
    model = wrapped(1)
    model(X)
    with pytest.raises(poptorch.Error, match=r"is a list of .* numbers, but 2 were given"):
        model.rng_state = [1, 2]


def test_replicas_draw_different_numbers():
    first, second = wrapped(3, replicas=2)(X).chunk(2)
    assert not torch.equal(first, second)


def test_device_iterations_draw_different_numbers():
    first, second = wrapped(3, iterations=2)(X).chunk(2)
    assert not torch.equal(first, second)


def test_a_detached_model_keeps_its_stream():
    model, other = wrapped(3), wrapped(3)
    model(X)
    other(X)
    model.detachFromDevice()
    assert torch.equal(model(X), other(X))


def test_without_a_seed_a_program_draws_what_eager_pytorch_would_draw():
    dropout = nn.Dropout(0.5)
    model = poptorch.inferenceModel(dropout)
    model.compile(X + 1)
    torch.manual_seed(9)
    expected = [dropout(X + 1) for _ in range(2)]
    torch.manual_seed(9)
    assert all(torch.equal(model(X + 1), each) for each in expected)
