"""The loss is the loss function that forward calls, whatever it returns: the rule of the poptorch drop-in."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from pilotage.capture.loss.called import LOSS_FUNCTIONS, CalledLossRule
from pilotage.capture.loss.search import mark_loss
from pilotage.errors import LossError
from pilotage.optim.reading import read_optimizer
from pilotage.options.choices import LossRule, Tier
from pilotage.options.execution import Execution
from pilotage.runtime.executor import Executor

SCORES = torch.rand(4, 3).clamp(0.1, 0.9)
CLASSES = torch.tensor([0, 2, 1, 0])
SIGNS = torch.tensor([1.0, -1.0, 1.0, -1.0])

CALLS = {
    functional.binary_cross_entropy: lambda f, x: f(x.sigmoid(), SCORES),
    functional.binary_cross_entropy_with_logits: lambda f, x: f(x, SCORES),
    functional.cosine_embedding_loss: lambda f, x: f(x, SCORES, SIGNS),
    functional.cross_entropy: lambda f, x: f(x, CLASSES),
    functional.gaussian_nll_loss: None,
    functional.ctc_loss: None,
    functional.hinge_embedding_loss: lambda f, x: f(x, SIGNS[:, None].expand(4, 3)),
    functional.huber_loss: lambda f, x: f(x, SCORES),
    functional.kl_div: lambda f, x: f(x.log_softmax(1), SCORES, reduction="batchmean"),
    functional.l1_loss: lambda f, x: f(x, SCORES),
    functional.margin_ranking_loss: lambda f, x: f(x[:, 0], x[:, 1], SIGNS),
    functional.mse_loss: lambda f, x: f(x, SCORES),
    functional.multi_margin_loss: lambda f, x: f(x, CLASSES),
    functional.multilabel_margin_loss: lambda f, x: f(x, torch.tensor([[0, 2, -1]]).expand(4, 3)),
    functional.multilabel_soft_margin_loss: lambda f, x: f(x, SCORES.round()),
    functional.nll_loss: lambda f, x: f(x.log_softmax(1), CLASSES),
    functional.poisson_nll_loss: lambda f, x: f(x, SCORES),
    functional.smooth_l1_loss: lambda f, x: f(x, SCORES),
    functional.soft_margin_loss: lambda f, x: f(x, SIGNS[:, None].expand(4, 3)),
    functional.triplet_margin_loss: lambda f, x: f(x, SCORES, SCORES + 1),
    functional.triplet_margin_with_distance_loss: lambda f, x: f(x, SCORES, SCORES + 1),
}


class Computing(nn.Module):
    def __init__(self, compute) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)
        self.compute = compute

    def forward(self, x):
        return self.compute(self.layer(x))


def train(module, batch):
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    plan = read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1), names)
    return Executor(module, plan=plan, execution=Execution(loss_rule=LossRule.CALLED, tier=Tier.GRAPH))(batch)


def train_eagerly(module, batch, loss_of):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    loss_of(module.layer(batch)).backward()
    optimizer.step()


def test_every_loss_function_of_torch_is_known():
    named = {getattr(functional, name) for name in dir(functional) if name.endswith("_loss")}
    more = {functional.cross_entropy, functional.binary_cross_entropy, functional.kl_div}
    more |= {functional.binary_cross_entropy_with_logits}
    # torch occasionally adds losses; a new one should be reviewed.
    assert named | more == LOSS_FUNCTIONS | {getattr(functional, "linear_cross_entropy_loss", functional.mse_loss)}


@pytest.mark.parametrize("function", [f for f, call in CALLS.items() if call], ids=lambda f: f.__name__)
def test_a_loss_of_torch_is_found_and_trained_on(function, twins, assert_same_state):
    mine, theirs = twins(lambda: Computing(lambda x: CALLS[function](function, x)))
    batch = torch.randn(4, 5)
    train(mine, batch)
    train_eagerly(theirs, batch, lambda x: CALLS[function](function, x))
    assert_same_state(mine, theirs)


def test_a_loss_module_is_found(twins, assert_same_state):
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    mine, theirs = twins(lambda: Computing(lambda x: loss(x, CLASSES)))
    batch = torch.randn(4, 5)
    train(mine, batch)
    train_eagerly(theirs, batch, lambda x: loss(x, CLASSES))
    assert_same_state(mine, theirs)


def test_operations_after_a_loss_do_not_change_the_gradients(twins, assert_same_state):
    mine, theirs = twins(lambda: Computing(lambda x: 5 * functional.mse_loss(x, SCORES)))
    batch = torch.randn(4, 5)
    assert torch.equal(train(mine, batch), theirs(batch).detach())
    train_eagerly(theirs, batch, lambda x: functional.mse_loss(x, SCORES))
    assert_same_state(mine, theirs)


def test_a_marked_loss_is_used_unchanged(twins, assert_same_state):
    mine, theirs = twins(lambda: Computing(lambda x: mark_loss(5 * functional.mse_loss(x, SCORES) + x.abs().sum())))
    batch = torch.randn(4, 5)
    train(mine, batch)
    train_eagerly(theirs, batch, lambda x: 5 * functional.mse_loss(x, SCORES) + x.abs().sum())
    assert_same_state(mine, theirs)


def test_losses_that_feed_another_loss_are_not_trained_on(twins, assert_same_state):
    def two(x):
        return mark_loss(functional.l1_loss(x, SCORES) + functional.mse_loss(x, SCORES))

    mine, theirs = twins(lambda: Computing(two))
    batch = torch.randn(4, 5)
    train(mine, batch)
    train_eagerly(theirs, batch, two)
    assert_same_state(mine, theirs)


def test_a_marked_loss_does_not_have_to_be_returned(twins, assert_same_state):
    def unreturned(x):
        functional.mse_loss(x, SCORES)
        return x * 2

    mine, theirs = twins(lambda: Computing(unreturned))
    batch = torch.randn(4, 5)
    train(mine, batch)
    train_eagerly(theirs, batch, lambda x: functional.mse_loss(x, SCORES))
    assert_same_state(mine, theirs)


def test_no_loss_is_refused_with_the_remedy():
    with pytest.raises(LossError, match="Couldn't find a loss in graph"):
        train(Computing(lambda x: x.abs().sum()), torch.randn(4, 5))


def test_two_losses_are_refused_with_the_remedy():
    with pytest.raises(LossError, match="Multiple independent losses found in graph"):
        train(Computing(lambda x: (functional.mse_loss(x, SCORES), functional.l1_loss(x, SCORES))), torch.randn(4, 5))


@pytest.mark.parametrize("cut", [lambda x: x.detach(), lambda x: torch.zeros(4, 3)], ids=["detached", "constant"])
def test_a_loss_without_gradients_changes_nothing(cut, twins, assert_same_state):
    mine, theirs = twins(lambda: Computing(lambda x: functional.mse_loss(cut(x), SCORES)))
    train(mine, torch.randn(4, 5))
    assert_same_state(mine, theirs)


def test_a_second_loss_without_gradients_is_ignored(twins, assert_same_state):
    def with_report(x):
        report = functional.l1_loss(x.detach(), SCORES)
        return report, functional.mse_loss(x, SCORES)

    mine, theirs = twins(lambda: Computing(with_report))
    batch = torch.randn(4, 5)
    train(mine, batch)
    train_eagerly(theirs, batch, lambda x: functional.mse_loss(x, SCORES))
    assert_same_state(mine, theirs)


def test_a_search_ends_with_its_block_even_when_it_raises():
    with pytest.raises(ZeroDivisionError), CalledLossRule({}):
        raise ZeroDivisionError
    loss = torch.ones(())
    assert mark_loss(loss) is loss
