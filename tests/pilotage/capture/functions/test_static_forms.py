"""Functions that read values: captured in another form, with the same results and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Categorical, Dirichlet, MultivariateNormal, Normal
from torch.nn import functional

import pilotage

pytestmark = pytest.mark.slow

X = torch.tensor([[0.5, 2.0, -1.0, 3.0], [1.5, -0.5, 4.0, 0.25], [2.0, 1.0, 0.0, -3.0]])
COUNTS = torch.tensor([3, 1, 2, 1])
WEIGHTS = torch.tensor([0.5, 1.5, 1.0, 2.0])
LABELS = torch.tensor([[1, 2], [3, 1], [2, 2]])


class Scaled(nn.Module):
    """A function of an input and a trained factor."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function
        self.factor = nn.Parameter(torch.tensor(1.25))

    def forward(self, x: Tensor) -> Tensor:
        return pilotage.mark_loss(self.function(x * self.factor).square().sum())


def ctc(lengths):
    def loss(x):
        scores = torch.stack([x, x.flip(0), x * 0.5, -x, x + 1, x]).log_softmax(-1)
        return functional.ctc_loss(scores, LABELS, lengths([6, 5, 6]), lengths([2, 2, 1]), reduction="none")

    return loss


EQUAL = {
    "cov": lambda x: torch.cov(x),
    "cov of a tensor": lambda x: x.cov(correction=0),
    "cov of a vector": lambda x: torch.cov(x[0]),
    "cov with counts": lambda x: torch.cov(x, fweights=COUNTS),
    "cov with weights": lambda x: torch.cov(x, aweights=WEIGHTS),
    "cov with both": lambda x: torch.cov(x, correction=2, fweights=COUNTS, aweights=WEIGHTS),
    "corrcoef": lambda x: torch.corrcoef(x),
    "corrcoef of a vector": lambda x: x[0].corrcoef(),
    "combinations": lambda x: torch.combinations(x[0], r=3),
    "combinations with replacement": lambda x: torch.combinations(x[0], with_replacement=True),
    "combinations of none": lambda x: torch.combinations(x[0], r=5),
    "ctc loss, lists": ctc(list),
    "ctc loss, tuples": ctc(tuple),
    "ctc loss, tensors": ctc(torch.tensor),
    "gaussian loss": lambda x: functional.gaussian_nll_loss(x, x.flip(0), x.square() + 0.1),
    "gaussian loss, one variance": lambda x: functional.gaussian_nll_loss(x, x.flip(0), 0.5, full=True),
    "istft": lambda x: torch.istft(torch.complex(x, x).repeat(3, 1), 16, hop_length=4, window=torch.ones(16)),
    "quantile": lambda x: torch.quantile(x, torch.tensor([0.25, 0.5]), dim=1),
    "nanquantile": lambda x: x.nanquantile(0.3),
    "bincount with weights": lambda x: torch.bincount(COUNTS, x[0].detach(), minlength=5) * x.sum(),
    "bincount": lambda x: COUNTS.bincount(minlength=4) * x.sum(),
    "normal": lambda x: Normal(x, x.abs() + 1).log_prob(x.flip(0)),
    "checked normal": lambda x: Normal(x, x.abs() + 1, validate_args=True).rsample(),
    "categorical": lambda x: Categorical(logits=x).log_prob(COUNTS[:3]),
    "bernoulli": lambda x: Bernoulli(logits=x).log_prob((x > 0).float()),
    "dirichlet": lambda x: Dirichlet(x.abs() + 1).log_prob(x.softmax(-1)),
    "multivariate normal": lambda x: MultivariateNormal(x[:, 0], x @ x.T + torch.eye(3)).log_prob(x[:, 1]),
}


@pytest.mark.parametrize("function", EQUAL.values(), ids=EQUAL)
def test_training_equals_eager(function, twins, assert_equal):
    mine, theirs = twins(lambda: Scaled(function))
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.01))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.01)
    torch.manual_seed(0)
    loss = step(X)
    torch.manual_seed(0)
    wanted = theirs(X)
    wanted.backward()
    optimizer.step()
    assert_equal(loss, wanted.detach(), 1e-5)
    assert_equal(mine.factor.detach(), theirs.factor.detach(), 1e-5)


@pytest.mark.filterwarnings("ignore:cov")
def test_a_covariance_without_degrees_of_freedom_equals_eager(assert_equal):
    module = nn.Module()
    module.forward = lambda x: torch.cov(x, correction=7)
    assert_equal(pilotage.inference(module)(X), torch.cov(X, correction=7))


def test_a_value_outside_the_bins_raises():
    module = nn.Module()
    module.forward = lambda x: torch.bincount(x, minlength=3)
    program = pilotage.inference(module)
    with pytest.raises(RuntimeError, match=r"torch\.bincount found a value that is not below minlength"):
        program(COUNTS)


def test_bins_are_counted_in_the_type_of_eager(assert_equal):
    for weights in (None, WEIGHTS, WEIGHTS.double(), WEIGHTS.half(), COUNTS):
        module = nn.Module()
        module.forward = lambda x, weights=weights: torch.bincount(x, weights, minlength=6)
        assert_equal(pilotage.inference(module)(COUNTS), torch.bincount(COUNTS, weights, minlength=6))


def test_distributions_check_their_arguments_again_after_a_capture(monkeypatch):
    # torch.compile, once used in a process, switches the checks off for good.
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)
    module = nn.Module()
    module.forward = lambda x: Normal(x, x.abs()).log_prob(x)
    pilotage.inference(module)(X)
    with pytest.raises(ValueError, match="scale"):
        Normal(X, -X.abs())
