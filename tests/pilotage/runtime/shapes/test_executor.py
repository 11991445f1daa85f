"""Programs for several shapes on the same weights and the same state of the optimizer."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import InputError
from pilotage.events import Checked, Noted


class Net(nn.Module):
    """Takes sequences of any length."""

    def __init__(self, drop=0.0):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        x = self.drop(self.first(x).tanh())
        return self.last(self.norm(x.transpose(1, 2)).mean(2))


OPTIMIZERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.05),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.05),
}


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


def pair(optimizer="adam", drop=0.0, **options):
    torch.manual_seed(0)
    theirs = Net(drop)
    mine = copy.deepcopy(theirs)
    eager, given = OPTIMIZERS[optimizer](theirs.parameters()), OPTIMIZERS[optimizer](mine.parameters())
    heard = []
    options = {"tier": "graph"} | options
    step = pilotage.training(mine, given, loss=nn.MSELoss(), listeners=[heard.append], **options)

    def train(x, y, parts=1):
        eager.zero_grad()
        for inputs, targets in zip(x.chunk(parts), y.chunk(parts), strict=True):
            (nn.functional.mse_loss(theirs(inputs), targets) / parts).backward()
        eager.step()

    return theirs, mine, step, train, (eager, given), heard


def batch(rows, length=4):
    return torch.randn(rows, length, 3), torch.randn(rows, 2)


def assert_same(mine, theirs, tolerance=1e-6):
    expected = theirs.state_dict()
    for name, tensor in mine.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_calls_of_several_shapes_train_as_in_eager(optimizer, tier):
    theirs, mine, step, train, optimizers, heard = pair(optimizer, tier=tier, check="first")
    schedules = [torch.optim.lr_scheduler.ExponentialLR(each, 0.9) for each in optimizers]
    for rows, length in [(8, 4), (8, 4), (5, 4), (8, 7), (8, 4), (5, 4), (8, 7), (8, 4)]:
        x, y = batch(rows, length)
        train(x, y)
        step(x, y)
        for schedule in schedules:
            schedule.step()
    assert_same(mine, theirs)
    assert step.record.compilations == 3
    notes = [event.message for event in heard if isinstance(event, Noted) and "its own program" in event.message]
    assert [note.partition("(")[2][:16] for note in notes] == ["2 of at most 8),", "3 of at most 8),"]
    assert [event.agrees for event in heard if isinstance(event, Checked)] == [True] * 3
    expected, found = (each.state_dict()["state"][0] for each in optimizers)
    assert found.keys() == expected.keys()
    assert float(found["step"]) == float(expected["step"]) == 8


def test_programs_share_their_state_on_the_device():
    _, _, step, _, _, _ = pair()
    step(*batch(8))
    first = step._executor.session
    step(*batch(5))
    second = step._executor.session
    assert first is not second
    assert first.strategy.state is second.strategy.state
    step(*batch(8))
    assert step._executor.session is first


def test_a_rest_of_device_iterations_and_accumulation_trains_as_in_eager():
    theirs, mine, step, train, _, _ = pair(device_iterations=3, gradient_accumulation=2)
    for rows in (24, 24, 8, 4, 3, 24):
        x, y = batch(rows)
        per_update = 8 if rows >= 8 else rows
        for inputs, targets in zip(x.split(per_update), y.split(per_update), strict=True):
            train(inputs, targets, parts=2 if len(inputs) == 8 else 1)
        step(x, y)
    assert_same(mine, theirs)


def test_the_limit_is_refused_with_what_to_do():
    _, mine, step, _, _, _ = pair(shapes=2)
    step(*batch(8))
    step(*batch(5))
    before = copy.deepcopy(mine.state_dict())
    with pytest.raises(InputError, match=r"shapes=2.*buckets="):
        step(*batch(4))
    assert_same(mine, Shown(before), tolerance=0)
    step(*batch(8))
    step(*batch(5))


class Shown:
    """Shows a state dictionary."""

    def __init__(self, state):
        self.state_dict = lambda: state


def test_with_one_shape_calls_of_other_shapes_are_refused():
    _, _, step, _, _, _ = pair(shapes=1)
    step(*batch(8))
    with pytest.raises(InputError, match="Shape mismatch"):
        step(*batch(5))


def test_a_call_that_cannot_be_captured_leaves_the_others_as_they_are():
    theirs, mine, step, train, _, _ = pair()
    x, y = batch(8)
    train(x, y)
    step(x, y)
    with pytest.raises(Exception, match=r"reduction dim|mat1|shape"):
        step(torch.randn(8, 4, 5), y)
    train(x, y)
    step(x, y)
    assert_same(mine, theirs)


def test_detaching_edits_and_modes_work_with_several_programs():
    theirs, mine, step, train, _, _ = pair()
    big, small = batch(8), batch(5)
    for given in (big, small):
        train(*given)
        step(*given)
    step.detach()
    for given in (big, small):
        train(*given)
        step(*given)
    with torch.no_grad():
        for module in (theirs, mine):
            module.last.bias.fill_(0.5)
    for given in (small, big):
        train(*given)
        step(*given)
    for module in (theirs, mine):
        module.norm.eval()
    for given in (small, big, small):
        train(*given)
        step(*given)
    assert_same(mine, theirs)


def test_dropout_draws_on_from_the_seed_in_every_program():
    _, _, step, _, _, _ = pair(drop=0.5, seed=3, outputs="all")
    x, y = torch.ones(8, 4, 3), torch.zeros(8, 2)
    first = step(x, y)[0]
    second = step(x[:5], y[:5])[0]
    assert not torch.equal(first[:5], second)


def test_inference_takes_several_shapes(assert_equal):
    model = Net().eval()
    step = pilotage.inference(model, tier="graph")
    for rows in (8, 3, 8):
        x, _ = batch(rows)
        assert_equal(step(x), model(x).detach())
    assert step.record.compilations == 2


def test_several_programs_are_saved_and_restored(tmp_path):
    theirs, mine, step, train, _, _ = pair()
    big, small = batch(8), batch(5)
    for given in (big, small):
        train(*given)
        step(*given)
    step.save_checkpoint(tmp_path, 2)
    for given in (big, small):
        step(*given)
    step.restore_checkpoint(tmp_path)
    for given in (big, small, big):
        train(*given)
        step(*given)
    assert_same(mine, theirs)
