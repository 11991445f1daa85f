"""Random numbers: those of eager under torch.manual_seed, own streams under a seed, the same again in a checkpoint."""

from __future__ import annotations

import random
import re

import numpy
import pytest
import torch
from torch import nn
from torch._library.opaque_object import is_opaque_type
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import pilotage
from pilotage.errors import CaptureError

pytestmark = pytest.mark.slow


class Dropping(nn.Module):
    """Returns dropout of ones, and a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        kept = self.dropout(torch.ones_like(x))
        return kept, functional.mse_loss(self.layer(x * kept), torch.zeros_like(x))


def training(module, **options):
    return pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), **options)


def batch(count=4):
    return torch.ones(count, 8)


RANDOM = {
    "dropout": lambda x: functional.dropout(x, 0.3, True),
    "dropout2d": lambda x: functional.dropout2d(x[:, None, None, :], 0.3, True)[:, 0, 0],
    "alpha_dropout": lambda x: functional.alpha_dropout(x, 0.3, True),
    "rrelu": lambda x: functional.rrelu(-x.abs(), training=True),
    "rand": lambda x: x + torch.rand(8),
    "rand_like": lambda x: x + torch.rand_like(x),
    "randn": lambda x: x + torch.randn(4, 8),
    "randint": lambda x: x + torch.randint(0, 9, (8,)),
    "randint_low": lambda x: x + torch.randint(3, 9, (8,)),
    "randperm": lambda x: x[:, torch.randperm(8)],
    "bernoulli": lambda x: x * torch.bernoulli(torch.full((8,), 0.5)),
    "normal": lambda x: x + torch.normal(torch.zeros(8), torch.ones(8)),
    "multinomial": lambda x: x * torch.multinomial(torch.ones(8), 8),
    "uniform_": lambda x: x + torch.empty(8).uniform_(-1, 1),
    "exponential_": lambda x: x + torch.empty(8).exponential_(),
    "unused": lambda x: (torch.rand(3), x)[1],
    "gumbel": lambda x: functional.gumbel_softmax(x),
    "attention": lambda x: functional.scaled_dot_product_attention(*[x.reshape(1, 4, 8)] * 3, dropout_p=0.2)[0],
}


class Through(nn.Module):
    """Something random between two layers, checkpointed or not."""

    def __init__(self, operation, reentrant=None) -> None:
        super().__init__()
        self.entry, self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.operation, self.reentrant = operation, reentrant

    def middle(self, x):
        return torch.tanh(self.operation(self.first(x)))

    def forward(self, x):
        x = self.entry(x)
        middle = self.middle(x) if self.reentrant is None else checkpoint(self.middle, x, use_reentrant=self.reentrant)
        output = self.second(functional.dropout(middle, 0.2, self.training))
        return output, functional.mse_loss(output, torch.zeros_like(output))


def assert_trains_as_eager(mine, theirs, make_batch, eager, assert_equal, assert_same_state, **options):
    step = training(mine, **options)
    reference = eager(theirs, torch.optim.SGD(theirs.parameters(), lr=0.1))
    for seed in range(3):
        torch.manual_seed(seed)
        outputs = step(make_batch())
        after = torch.get_rng_state()
        torch.manual_seed(seed)
        assert_equal(outputs, reference(make_batch()))
        assert_equal(after, torch.get_rng_state())
    assert_same_state(mine, theirs)


@pytest.mark.parametrize(
    ("operation", "tier"), [*((operation, "graph") for operation in RANDOM), ("dropout", "eager"), ("rand", "eager")]
)
def test_without_a_seed_the_numbers_are_those_of_eager_pytorch(
    operation, tier, twins, eager, assert_equal, assert_same_state
):
    mine, theirs = twins(lambda: Through(RANDOM[operation]))
    assert_trains_as_eager(mine, theirs, batch, eager, assert_equal, assert_same_state, tier=tier)


@pytest.mark.parametrize(
    ("operation", "reentrant"),
    [*((operation, False) for operation in RANDOM), ("dropout", True), ("rrelu", True), ("randn", True)],
)
def test_a_checkpoint_draws_the_same_numbers_again(operation, reentrant, twins, eager, assert_equal, assert_same_state):
    mine, theirs = twins(lambda: Through(RANDOM[operation], reentrant))
    assert_trains_as_eager(mine, theirs, batch, eager, assert_equal, assert_same_state)


def test_a_reentrant_checkpoint_of_an_input_trains_nothing_as_in_eager_and_warns(
    twins, eager, assert_equal, assert_same_state
):
    mine, theirs = twins(lambda: Through(RANDOM["dropout"], reentrant=True))
    for module in (mine, theirs):
        module.entry = nn.Identity()
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert_trains_as_eager(mine, theirs, batch, eager, assert_equal, assert_same_state)


def test_nested_checkpoints_draw_the_same_numbers_again(twins, eager, assert_equal, assert_same_state):
    class Nested(Through):
        def forward(self, x):
            def inner(x):
                return functional.dropout(self.first(x), 0.5, True)

            def outer(x):
                return checkpoint(inner, functional.dropout(x, 0.5, True), use_reentrant=False) * torch.rand(8)

            output = self.second(checkpoint(outer, x, use_reentrant=False))
            return output, functional.mse_loss(output, torch.zeros_like(output))

    mine, theirs = twins(lambda: Nested(None))
    assert_trains_as_eager(mine, theirs, batch, eager, assert_equal, assert_same_state)


class Own(Through):
    """Draws from its own generator."""

    def __init__(self) -> None:
        super().__init__(None)
        self.generator = torch.Generator().manual_seed(5)

    def middle(self, x):
        return self.first(x) + torch.rand(8, generator=self.generator)  # own


@pytest.mark.skipif(not is_opaque_type(torch.Generator), reason="this torch cannot write a generator into a graph")
def test_a_user_generator_continues_as_in_eager(eager, assert_equal):
    torch.manual_seed(0)
    mine = Own()
    torch.manual_seed(0)
    theirs = Own()
    step, reference = training(mine), eager(theirs, torch.optim.SGD(theirs.parameters(), lr=0.1))
    for _ in range(3):
        torch.manual_seed(1)
        outputs = step(batch())
        torch.manual_seed(1)
        assert_equal(outputs, reference(batch()))


@pytest.mark.skipif(is_opaque_type(torch.Generator), reason="this torch can write a generator into a graph")
def test_a_generator_that_torch_cannot_write_is_refused_with_the_users_line(line_of):
    with pytest.raises(CaptureError, match=r"for example a generator(?s:.*)" + re.escape(line_of("own"))):
        training(Own())(batch())


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_each_step_draws_new_numbers(tier):
    step = training(Dropping(), device_iterations=2, outputs="all", tier=tier)
    masks = [mask for _ in range(2) for mask in step(batch(8))[0].chunk(2)]
    assert len({tuple(mask.flatten().tolist()) for mask in masks}) == 4


def test_a_seed_makes_runs_repeatable_whatever_the_host_draws_in_between(assert_equal):
    def run(disturb):
        torch.manual_seed(0)
        step = training(Dropping(), seed=7)
        kept = []
        for _ in range(3):
            if disturb:
                torch.rand(11)
            kept.append(step(batch())[0])
        return kept

    assert_equal(run(disturb=False), run(disturb=True))


def test_with_a_seed_the_host_generator_is_untouched(assert_equal):
    step = training(Dropping(), seed=7)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    step(batch())
    step(batch())
    assert_equal(torch.get_rng_state(), before)


def test_one_replica_under_a_seed_draws_as_eager_would_after_manual_seed(assert_equal):
    torch.manual_seed(0)
    module = Dropping()
    kept = training(module, seed=7)(batch())[0]
    torch.manual_seed(7)
    assert_equal(kept, module.dropout(torch.ones(4, 8)))


@pytest.mark.parametrize("seed", [None, 7])
def test_replicas_draw_different_numbers(seed):
    torch.manual_seed(0)
    step = training(Dropping(), seed=seed, replicas=3, outputs="all")
    masks = step(batch(12))[0].chunk(3)
    assert len({tuple(mask.flatten().tolist()) for mask in masks}) == 3


def test_replicas_without_a_seed_are_repeatable_by_torchs_seed(assert_equal):
    def run():
        torch.manual_seed(4)
        return training(Dropping(), replicas=2, outputs="all")(batch(8))[0]

    assert_equal(run(), run())


def test_different_seeds_draw_differently():
    first, second = (training(Dropping(), seed=seed)(batch())[0] for seed in (1, 2))
    assert not torch.equal(first, second)


def test_changing_the_mode_does_not_restart_the_random_stream():
    step = training(Dropping(), seed=7)
    first = step(batch())[0]
    step.eval()
    assert step(batch())[0].tolist() == torch.ones(4, 8).tolist()
    step.train()
    assert not torch.equal(step(batch())[0], first)


def test_detaching_does_not_restart_the_random_stream(assert_equal):
    torch.manual_seed(0)
    plain, detached = training(Dropping(), seed=7), training(Dropping(), seed=7)
    for _ in range(3):
        assert_equal(plain(batch())[0], detached(batch())[0])
        detached.detach()


def manual_seed():
    torch.manual_seed(0)


def put_back():
    torch.set_rng_state(torch.Generator().manual_seed(3).get_state())


@pytest.mark.parametrize("seed", [manual_seed, put_back])
def test_seeding_in_forward_is_refused_with_its_line(seed, line_of):
    class Seeding(Dropping):
        def forward(self, x):
            seed()
            return super().forward(x + torch.rand(8))  # draws

    with pytest.raises(CaptureError, match="(?s)sets the state.*" + re.escape(line_of("draws"))):
        training(Seeding())(batch())


@pytest.mark.parametrize(
    ("draw", "name"), [(random.random, "Python's random"), (numpy.random.rand, "numpy.random")], ids=["python", "numpy"]
)
def test_draws_from_other_generators_are_reported(draw, name, warned):
    class Drawing(Dropping):
        def forward(self, x):
            return super().forward(x * float(draw()))

    training(Drawing(), listeners=[warned])(batch())
    (message,) = warned.messages
    assert f"draws from {name}" in message
    assert "torch.rand" in message
