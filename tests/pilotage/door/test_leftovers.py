"""What is left over of a plain training loop says what to remove."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import LossError
from pilotage.events import Warned


@pytest.fixture
def wrapped(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    heard = []
    step = pilotage.training(model, optimizer, loss=nn.MSELoss(), tier="graph", listeners=[heard.append])
    return step, optimizer, lambda: [event.message for event in heard if isinstance(event, Warned)]


BATCH = torch.ones(3, 2), torch.zeros(3, 1)


def test_backward_says_what_to_remove(wrapped):
    step, _, _ = wrapped
    _, loss = step(*BATCH)
    with pytest.raises(LossError, match=r"Remove loss.backward\(\), optimizer.zero_grad\(\) and optimizer.step\(\)"):
        loss.backward()
    assert (loss + 1).item() == pytest.approx(loss.item() + 1)
    assert torch.equal(copy.deepcopy(loss), loss)
    assert torch.equal(pickle.loads(pickle.dumps(loss)), loss)


@pytest.mark.parametrize(
    "habit",
    [
        lambda loss: (loss / 4).backward(),
        lambda loss: (0.5 * loss + 1).mean().backward(),
        lambda loss: torch.amp.GradScaler("cpu").scale(loss).backward(),
        lambda loss: sum([loss, loss]).backward(retain_graph=True),
    ],
    ids=["divided", "weighted", "scaled", "summed"],
)
def test_backward_of_what_is_computed_from_the_loss_says_what_to_remove(wrapped, habit):
    step, _, _ = wrapped
    _, loss = step(*BATCH)
    with pytest.raises(LossError, match=r"Remove loss.backward\(\)"):
        habit(loss)


def test_what_people_do_with_a_loss_gives_plain_tensors(wrapped, tmp_path):
    step, _, _ = wrapped
    _, loss = step(*BATCH)
    torch.save({"loss": loss}, tmp_path / "loss.pt")
    assert type(torch.load(tmp_path / "loss.pt", weights_only=True)["loss"]) is torch.Tensor
    assert repr(loss) == f"tensor({loss.item():.4f})"
    assert type(torch.stack([loss, loss])) is torch.Tensor
    assert type(loss.detach()) is torch.Tensor
    assert float(loss) == loss.item() == float(loss.numpy())
    assert f"{loss:.3f}" == f"{loss.item():.3f}"
    weight = torch.ones(1, requires_grad=True)
    (weight * loss).sum().backward()
    assert weight.grad.item() == loss.item()


def test_outputs_other_than_the_loss_are_plain_tensors(wrapped):
    step, _, _ = wrapped
    output, _ = step(*BATCH)
    assert type(output) is torch.Tensor


def test_zero_grad_is_named_once_with_its_line(wrapped):
    step, optimizer, warnings = wrapped
    for _ in range(3):
        optimizer.zero_grad()
        step(*BATCH)
    (message,) = warnings()
    assert "optimizer.zero_grad() at" in message
    assert "test_leftovers.py" in message
    assert "Remove loss.backward()" in message


def test_training_on_the_host_in_between_is_not_reported(wrapped):
    step, optimizer, warnings = wrapped
    step(*BATCH)
    nn.functional.mse_loss(step.module(BATCH[0]), BATCH[1]).backward()
    optimizer.zero_grad()
    assert all(parameter.grad is None for parameter in step.module.parameters())
    assert not warnings()


def test_step_is_named_at_the_next_call(wrapped):
    step, optimizer, warnings = wrapped
    step(*BATCH)
    optimizer.step()
    step(*BATCH)
    (message,) = warnings()
    assert "has no effect" in message
    assert "Leave out optimizer.step(), together with zero_grad() and backward()" in message


def test_clipping_on_the_host_names_the_option(wrapped):
    step, _, warnings = wrapped
    step(*BATCH)
    torch.nn.utils.clip_grad_norm_(step.module.parameters(), 1.0)
    (message,) = warnings()
    assert "pass clip_grad_norm= or clip_grad_value= to pilotage.training" in message
