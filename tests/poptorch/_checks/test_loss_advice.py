"""PopTorch trains on the loss operation, whatever follows it, and warns where that matters."""

from __future__ import annotations

import inspect
import runpy
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

BATCH = torch.linspace(-1, 1, 20).reshape(4, 5) ** 3
TARGETS = torch.linspace(0, 1, 12).reshape(4, 3)
MASK = torch.tensor([1.0, 0.0, 1.0, 1.0])
CLASSES = torch.tensor([0, 2, 1, 0])
Layer = runpy.run_path(str(Path(__file__).parents[1] / "layers.py"))["Layer"]


def trainer(finish, tier="graph"):
    module = Layer(finish)
    options = poptorch.Options().runOn("cpu", tier=tier).showCompilationProgressBar(False)
    return module, poptorch.trainingModel(module, options, poptorch.optim.SGD(module.parameters(), lr=0.1))


def eagerly(loss_of):
    module = Layer(loss_of)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    loss_of(module.layer(BATCH)).sum().backward()
    optimizer.step()
    return module


def assert_trained_alike(module, other):
    torch.testing.assert_close(module.layer.weight, other.layer.weight, rtol=0, atol=1e-7)


def mse(x):
    return functional.mse_loss(x, TARGETS)


def line_in(function, text):
    lines, start = inspect.getsourcelines(function)
    (number,) = (number for number, line in enumerate(lines, start) if text in line)
    return f"{inspect.getsourcefile(function)}:{number}"


def five_times(x):
    loss = functional.mse_loss(x, TARGETS)
    larger = 5 * loss
    return x, larger.reshape(1)


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_work_after_the_loss_gives_one_warning_with_both_lines_and_the_remedy(tier, warnings_of_poptorch):
    module, model = trainer(five_times, tier)
    model(BATCH)
    assert_trained_alike(module, eagerly(mse))
    (said,) = warnings_of_poptorch()
    assert line_in(five_times, "mse_loss") in said
    assert line_in(five_times, "5 * loss") in said
    assert "output[1]" in said
    assert 'poptorch.identity_loss(final, reduction="none")' in said
    model(BATCH)
    model.destroy()
    model(BATCH)
    assert len(warnings_of_poptorch()) == 1


def masked(x):
    each = functional.cross_entropy(x, CLASSES, reduction="none")
    return (each * MASK).sum() / MASK.sum()


def mean_of_each(x):
    each = functional.cross_entropy(x, CLASSES, reduction="none")
    return each.mean()


def penalised(x):
    loss = functional.mse_loss(x, TARGETS)
    return loss + 0.1 * x.abs().sum()


def negative(x):
    loss = functional.mse_loss(x, TARGETS)
    return 0 - loss


def in_place(x):
    loss = functional.mse_loss(x, TARGETS)
    loss *= 5
    return loss


def in_place_in_a_view(x):
    loss = functional.mse_loss(x, TARGETS)
    loss.view(1).mul_(5)
    return loss


def after_a_mark(x):
    loss = poptorch.identity_loss(x, "mean")
    return loss.exp()


def copies_added_up(x):
    loss = functional.mse_loss(x, TARGETS)
    copies = loss.expand(3)
    return copies.sum()


def in_a_dictionary(x):
    loss = nn.MSELoss()(x, TARGETS)
    both = torch.stack([loss, loss])
    return {"scores": x, "total": both.sum()}


WORK = {
    masked: ("reduction", "* MASK"),
    mean_of_each: ("reduction", "each.mean"),
    penalised: ("mse_loss", "0.1"),
    negative: ("mse_loss", "0 - loss"),
    in_place: ("mse_loss", "*= 5"),
    in_place_in_a_view: ("mse_loss", "mul_"),
    after_a_mark: ("identity_loss", "exp"),
    copies_added_up: ("mse_loss", "copies.sum"),
    in_a_dictionary: ("MSELoss", "both.sum"),
}


@pytest.mark.parametrize("finish", WORK, ids=lambda finish: finish.__name__)
def test_every_kind_of_work_is_noticed(finish, warnings_of_poptorch):
    trainer(finish)[1](BATCH)
    (said,) = warnings_of_poptorch()
    loss, work = WORK[finish]
    assert line_in(finish, loss) in said
    assert line_in(finish, work) in said


def with_metrics(x):
    loss = mse(x)
    with torch.no_grad():
        error = loss.sqrt() + x.abs().mean()
    return loss, error, (loss.detach() * 100).round()


def packed(x):
    table = torch.zeros(2)
    table[0] = mse(x)
    table[1] = x.detach().abs().max()
    return table


SOUND = {
    "as it is": mse,
    "beside the scores": lambda x: (x, mse(x)),
    "beside more work on the scores": lambda x: (x.softmax(1), mse(x)),
    "viewed": lambda x: mse(x).view(1),
    "reshaped and copied": lambda x: mse(x).reshape(1, 1).clone().squeeze(),
    "cast": lambda x: mse(x).double().float(),
    "detached before work": lambda x: (5 * mse(x).detach()).sqrt(),
    "with metrics": with_metrics,
    "not returned": lambda x: (mse(x), x.detach())[1],
    "added to a start of 0": lambda x: sum([mse(x)]),
    "added to a constant": lambda x: mse(x) + torch.ones(()),
    "divided by 1": lambda x: mse(x) / 1,
    "mean of one element": lambda x: mse(x).mean(),
    "sum over the elements of the loss": lambda x: functional.mse_loss(x, TARGETS, reduction="none").sum(),
    "sum over one dimension": lambda x: functional.mse_loss(x, TARGETS, reduction="none").sum(1),
    "one of its elements": lambda x: functional.mse_loss(x, TARGETS, reduction="none")[0],
    "stacked with a metric": lambda x: torch.stack([mse(x), x.detach().abs().max()]),
    "written into a table": packed,
    "printed": lambda x: poptorch.ipu_print_tensor(mse(x), print_gradient=False),
    "wrapped, with work before": lambda x: poptorch.identity_loss(5 * mse(x), "none"),
    "a loss of a loss": lambda x: functional.l1_loss(3 * mse(x), torch.zeros(())),
}


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize("style", SOUND)
def test_correct_uses_of_the_loss_give_no_warning(style, tier, warnings_of_poptorch):
    trainer(SOUND[style], tier)[1](BATCH)
    assert warnings_of_poptorch() == []


def test_a_sum_that_starts_with_a_constant_trains_like_the_loss():
    for style in ("added to a start of 0", "added to a constant", "divided by 1", "mean of one element"):
        module, model = trainer(SOUND[style])
        model(BATCH)
        assert_trained_alike(module, eagerly(SOUND[style]))


def test_losses_are_not_checked_in_inference(warnings_of_poptorch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        poptorch.inferenceModel(Layer(five_times))(BATCH)
    assert warnings_of_poptorch() == []


class Untrained(nn.Module):
    def __init__(self, *, frozen):
        super().__init__()
        self.norm = nn.BatchNorm1d(2).requires_grad_(not frozen).eval()
        self.frozen = frozen

    def forward(self, x):
        y = self.norm(x) if self.frozen else nn.functional.dropout(x, 0.5, training=False).repeat(2, 1)
        return y, poptorch.identity_loss(y, "sum")


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_model_whose_loss_depends_on_no_parameter_runs_with_one_warning(frozen, accumulation, caplog):
    module = Untrained(frozen=frozen)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    options = poptorch.Options()
    options.Training.gradientAccumulation(accumulation)
    model = poptorch.trainingModel(module, options, poptorch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9))
    x = torch.randn(2 * accumulation, 2)
    for _ in range(2):
        outputs, _ = model(x)
    expected, _ = module(x[-2:])
    torch.testing.assert_close(outputs, expected)
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert caplog.text.count("The loss does not depend on any parameter") == 1
