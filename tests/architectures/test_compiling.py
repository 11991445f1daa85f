"""Each architecture reaches compiled code, and trains as in eager PyTorch."""

from __future__ import annotations

import copy

import pytest
import torch
from corpus import CASES

import pilotage
from pilotage.errors import OptionError

STEPS = 3

REFUSED: dict[str, str] = {}
"""Architectures that cannot be compiled, with the reason that the user is told."""


def test_there_are_sixty_architectures():
    assert len(CASES) >= 60


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_parameter_of_an_architecture_is_trained(name):
    torch.manual_seed(0)
    model, inputs = CASES[name].make(), CASES[name].inputs()
    loss = model(*inputs)
    loss.backward()
    assert torch.isfinite(loss)
    assert not [key for key, each in model.named_parameters() if each.requires_grad and each.grad is None]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CASES)
def test_an_architecture_reaches_compiled_code_and_trains_as_in_eager_pytorch(tmp_path, name):
    torch.manual_seed(0)
    case = CASES[name]
    model, inputs = case.make(), case.inputs()
    eager = copy.deepcopy(model)
    trainer = pilotage.training(
        model, case.optimizer(model.parameters()), backend="cpu", tier="compiled", cache_directory=tmp_path
    )
    if name in REFUSED:
        with pytest.raises(OptionError, match=REFUSED[name]):
            trainer(*inputs)
        return
    torch.manual_seed(7)
    losses = [float(trainer(*inputs).detach()) for _ in range(STEPS)]
    assert trainer.record.latest_tier == "compiled"
    optimizer = case.optimizer(eager.parameters())
    torch.manual_seed(7)
    expected = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = eager(*inputs)
        loss.backward()
        optimizer.step()
        expected.append(float(loss.detach()))
    assert losses == pytest.approx(expected, rel=1e-4, abs=1e-5)
    for key, found in model.state_dict().items():
        torch.testing.assert_close(found, eager.state_dict()[key], rtol=1e-3, atol=1e-4, msg=key)
