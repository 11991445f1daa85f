"""In `pilotage.training` the loss is what forward returns: one step equals eager PyTorch, whatever follows a loss."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_outputs import DataclassOutput, ModelOutput
from torch import Tensor, nn
from torch.nn import functional

import pilotage
from pilotage.errors import LossError

CLASSES = torch.tensor([0, 2, 1, 0])
MASK = torch.tensor([1.0, 0.0, 1.0, 1.0])
SCORES = torch.linspace(-1, 1, 12).reshape(4, 3)
TIERS = ["eager", "graph"]


class Computing(nn.Module):
    """A layer, and a function from its scores to outputs."""

    def __init__(self, compute) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(5, 3)
        self.compute = compute

    def forward(self, x):
        return self.compute(self.layer(x))


def batch(micro_batches: int = 1) -> Tensor:
    return torch.randn(micro_batches * 4, 5, generator=torch.Generator().manual_seed(1))


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1)


def train(compute, *, micro_batches=1, **options):
    module = Computing(compute)
    result = pilotage.training(module, sgd(module), backend="cpu", **options)(batch(micro_batches))
    return module, result


def train_eagerly(loss_of, micro_batches=1):
    """One step of eager PyTorch with averaged gradients of some micro-batches."""
    module = Computing(loss_of)
    optimizer = sgd(module)
    for part in batch(micro_batches).chunk(micro_batches):
        (module(part) / micro_batches).sum().backward()
    optimizer.step()
    return module


def assert_trained_alike(module, other, *, tolerance=1e-7):
    weights, others = dict(module.named_parameters()), dict(other.named_parameters())
    torch.testing.assert_close(weights, others, rtol=0, atol=tolerance)


def moved(module):
    return (module.layer.weight - Computing(None).layer.weight).abs().max().item()


def cross_entropy(x, **settings):
    return functional.cross_entropy(x, CLASSES, **settings)


def focal(x):
    each = cross_entropy(x, reduction="none")
    return ((1 - torch.exp(-each)) ** 2 * each).mean()


def added_in_place(x):
    loss = cross_entropy(x)
    loss += 0.1 * x.abs().sum()
    return loss


LOSSES = {
    "times 5": lambda x: 5 * cross_entropy(x),
    "with a penalty": lambda x: cross_entropy(x) + 0.1 * x.abs().sum(),
    "divided by 4": lambda x: cross_entropy(x) / 4,
    "masked": lambda x: (cross_entropy(x, reduction="none") * MASK).sum() / MASK.sum(),
    "mean of each": lambda x: cross_entropy(x, reduction="none").mean(),
    "focal": focal,
    "added in place": added_in_place,
    "two functions": lambda x: cross_entropy(x) + functional.mse_loss(x, SCORES),
    "no function of torch's": lambda x: (x - SCORES).abs().pow(3).mean(),
    "a loss beside that is not returned": lambda x: (functional.l1_loss(x, SCORES), x.square().mean())[1],
    "of one element": lambda x: 3 * cross_entropy(x).reshape(1, 1),
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", LOSSES)
def test_one_step_on_what_forward_returns_equals_eager(name, tier):
    module, result = train(LOSSES[name], tier=tier)
    reference = train_eagerly(LOSSES[name])
    assert_trained_alike(module, reference)
    assert moved(reference) > 1e-3
    torch.testing.assert_close(result, Computing(LOSSES[name])(batch()).detach())


class Masked(nn.Module):
    """A network whose loss is computed per item and averaged over some items."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(5, 3)

    def forward(self, x, classes, mask):
        scores = self.layer(x)
        each = functional.cross_entropy(scores, classes, reduction="none")
        return scores, (each * mask).sum() / mask.sum() + 0.1 * scores.abs().sum()


@pytest.mark.slow
def test_one_step_in_compiled_code_equals_eager(tmp_path):
    module, twin = Masked(), Masked()
    step = pilotage.training(module, sgd(module), backend="cpu", tier="compiled", cache_directory=tmp_path)
    step(batch(), CLASSES, MASK)
    optimizer = sgd(twin)
    twin(batch(), CLASSES, MASK)[1].backward()
    optimizer.step()
    assert_trained_alike(module, twin, tolerance=1e-6)
    assert {tier for _, tier in step.record.steps} == {"compiled"}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    "options", [{"gradient_accumulation": 3}, {"replicas": 2}, {"gradient_accumulation": 2, "replicas": 2}]
)
@pytest.mark.parametrize("name", ["times 5", "focal"])
def test_gradients_of_several_micro_batches_are_those_of_what_forward_returns(name, options, tier):
    micro_batches = options.get("gradient_accumulation", 1) * options.get("replicas", 1)
    module, _ = train(LOSSES[name], tier=tier, micro_batches=micro_batches, **options)
    assert_trained_alike(module, train_eagerly(LOSSES[name], micro_batches))


@dataclass
class Output:
    scores: Tensor
    loss: Tensor | None = None
    penalty: Tensor | None = None


Pair = namedtuple("Pair", "penalty loss")


def final(x):
    return 7 * cross_entropy(x)


SHAPES = {
    "alone": lambda x: final(x),
    "behind the scores": lambda x: (x, final(x)),
    "before the scores": lambda x: [final(x), x],
    "nested": lambda x: {"a": {"b": (x, final(x))}},
    "under another name": lambda x: {"scores": x, "objective": final(x)},
    "twice": lambda x: [final(x)] * 2,
    "beside a detached metric": lambda x: (x.detach().abs().mean(), final(x)),
    "beside scores of one element": lambda x: (x[:1, :1], final(x)),
    "in a dictionary": lambda x: {"penalty": x.abs().mean(), "loss": final(x), "scores": x},
    "in a data class": lambda x: Output(x, final(x), x.abs().mean()),
    "in a named tuple": lambda x: Pair(x.abs().mean(), final(x)),
    "in a model's output": lambda x: ModelOutput(loss=final(x), logits=x, aux_loss=x.abs().mean(), cache=None),
    "in a model's output as a data class": lambda x: DataclassOutput(loss=final(x), logits=x, aux_loss=x.abs().mean()),
    "marked": lambda x: pilotage.mark_loss(final(x)),
    "marked and not returned": lambda x: (pilotage.mark_loss(final(x)), x.abs().sum())[1],
    "marked among two": lambda x: (x.abs().sum(), pilotage.mark_loss(final(x))),
    "marked, against the name": lambda x: {"loss": x.abs().sum(), "other": pilotage.mark_loss(final(x))},
    "marked, of one element": lambda x: pilotage.mark_loss(final(x).reshape(1)),
    "marked once more": lambda x: pilotage.mark_loss(7 * pilotage.mark_loss(cross_entropy(x))),
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", SHAPES)
def test_the_loss_is_found_anywhere_in_the_outputs(name, tier):
    module, _ = train(SHAPES[name], tier=tier)
    assert_trained_alike(module, train_eagerly(final))


def test_an_output_comes_back_in_the_class_that_forward_returned():
    _, result = train(SHAPES["in a model's output as a data class"], tier="graph")
    expected = Computing(SHAPES["in a model's output as a data class"])(batch())
    assert isinstance(result, DataclassOutput)
    torch.testing.assert_close(dict(result), {name: tensor.detach() for name, tensor in expected.items()})


TWO = (
    r"forward returns 2 scalars that require a gradient.*output\[0\] of shape \(\).*output\[1\] of shape \(\)"
    r".*pilotage\.mark_loss.*loss="
)
REFUSED = {
    "no scalar": (lambda x: (x, x.argmax(1)), r"no scalar .*output\[0\] of shape \(4, 3\).*mark_loss.*loss="),
    "one for each item": (lambda x: cross_entropy(x, reduction="none"), r"no scalar.*output of shape \(4,\)"),
    "no tensor": (lambda x: "done", "no tensor"),
    "two": (lambda x: (cross_entropy(x), functional.mse_loss(x, SCORES)), TWO),
    "the final one and its parts": (lambda x: [final(x), x.abs().sum()], TWO),
    "two of one element": (
        lambda x: (x[:1, 0], final(x).reshape(1)),
        r"forward returns 2 .*output\[0\] of shape \(1,\).*output\[1\] of shape \(1,\)",
    ),
    "two names": (
        lambda x: {"ce": cross_entropy(x), "penalty": x.abs().sum()},
        r"output\['ce'\].*output\['penalty'\].*under the name 'loss'",
    ),
    "complex": (lambda x: torch.complex(final(x), final(x)), r"no scalar.*complex64"),
    "loss is None": (lambda x: Output(x, None, x.abs().mean()), "returns None as 'loss'.*labels"),
    "loss of each item": (
        lambda x: {"loss": cross_entropy(x, reduction="none"), "penalty": x.abs().mean()},
        r"What forward returns as 'loss' is a tensor of shape \(4,\)",
    ),
    "detached": (lambda x: final(x).detach(), "depends on any parameter that requires a gradient.*detach"),
    "two marks": (
        lambda x: (pilotage.mark_loss(cross_entropy(x)), pilotage.mark_loss(x.abs().sum())),
        "forward marks 2 independent losses, at .*test_returned.py:",
    ),
    "a mark of each item": (
        lambda x: pilotage.mark_loss(cross_entropy(x, reduction="none")),
        r"The marked loss is a tensor of shape \(4,\)",
    ),
    "a detached mark": (
        lambda x: (pilotage.mark_loss(final(x).detach()), x.sum()),
        "does not depend on any parameter that requires a gradient",
    ),
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", REFUSED)
def test_no_loss_or_more_than_one_is_an_error_that_says_what_was_found(name, tier):
    compute, words = REFUSED[name]
    with pytest.raises(LossError, match=words):
        train(compute, tier=tier)


def test_an_error_leaves_the_weights_unchanged_and_the_model_usable():
    module = Computing(lambda x: (cross_entropy(x), x.sum()))
    step = pilotage.training(module, sgd(module))
    with pytest.raises(LossError):
        step(batch())
    assert moved(module) == 0
    module.compute = final
    step(batch())
    assert_trained_alike(module, train_eagerly(final))


def test_long_lists_of_outputs_are_shortened():
    with pytest.raises(LossError, match=r"output\[7\] of shape \(4, 3\) \(float32\) and 12 more\."):
        train(lambda x: [x + i for i in range(20)])


@pytest.mark.parametrize("tier", TIERS)
def test_the_check_for_finite_losses_looks_at_what_is_returned(tier):
    module = Computing(lambda x: cross_entropy(x) * float("inf"))
    step = pilotage.training(module, sgd(module), nonfinite_loss="raise", tier=tier, backend="cpu")
    with pytest.raises(pilotage.errors.NonFiniteLossError):
        step(batch())
    assert moved(module) == 0


OPERATIONS = {
    "times": lambda loss, x, k: loss * k,
    "divided": lambda loss, x, k: loss / k,
    "negative": lambda loss, x, k: -loss,
    "penalty": lambda loss, x, k: loss + k * x.square().mean(),
    "root": lambda loss, x, k: (loss.square() + 1).sqrt(),
    "logarithm": lambda loss, x, k: (1 + loss.square()).log(),
    "focal": lambda loss, x, k: (1 - (-loss.square()).exp()) * loss,
    "flat": lambda loss, x, k: loss.clamp(min=-k, max=k) + loss,
    "stacked": lambda loss, x, k: torch.stack([loss.mean(), x.abs().mean()]),
    "in place": lambda loss, x, k: loss.clone().mul_(k),
}
REDUCTIONS = {"sum": torch.sum, "mean": torch.mean, "largest": torch.amax}


@settings(max_examples=25)
@given(
    reduction=st.sampled_from(["none", "mean", "sum"]),
    work=st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.floats(0.25, 3)), min_size=1, max_size=4),
    last=st.sampled_from(sorted(REDUCTIONS)),
    wrap=st.sampled_from(
        [lambda loss, x: loss, lambda loss, x: (x, loss), lambda loss, x: {"loss": loss, "x": x.sum()}]
    ),
    tier=st.sampled_from(TIERS),
)
def test_whatever_is_computed_after_a_loss_trains_like_eager(reduction, work, last, wrap, tier):
    def composed(x):
        loss = cross_entropy(x, reduction=reduction)
        for name, factor in work:
            loss = OPERATIONS[name](loss, x, factor)
        return REDUCTIONS[last](loss)

    module, _ = train(lambda x: wrap(composed(x), x), tier=tier)
    reference = train_eagerly(composed)
    # Two kernels may round a step differently, relative to its size.
    assert_trained_alike(module, reference, tolerance=1e-6 * max(1.0, moved(reference)))
