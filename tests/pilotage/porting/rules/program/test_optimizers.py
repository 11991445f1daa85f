from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pilotage.porting.driver import port_texts
from pilotage.porting.finding import Severity
from pilotage.porting.rules.program.optimizers import SUPPORTED
from pilotage.porting.target import Target

TEXT = """\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(8, 2)
optimizer = {made}
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
NAMES = sorted(
    name
    for name, each in vars(torch.optim).items()
    if isinstance(each, type) and issubclass(each, torch.optim.Optimizer) and each is not torch.optim.Optimizer
)


def report(made: str, target: Target):
    return port_texts({Path("script.py"): TEXT.format(made=made)}, target)


@pytest.mark.parametrize("name", NAMES)
def test_pilotage_keeps_every_optimizer_of_torch_but_two(name):
    made = report(f"torch.optim.{name}(model.parameters())", Target.PILOTAGE)
    assert made.is_complete is (name not in ("LBFGS", "SparseAdam"))
    if made.is_complete:
        assert f"optimizer = torch.optim.{name}(model.parameters())\n" in made.files[0].after
    assert report(f"torch.optim.{name}(model.parameters())", Target.POPTORCH).is_complete is (name in SUPPORTED)


def test_pilotage_takes_arguments_that_poptorch_does_not():
    made = "torch.optim.Adam(model.parameters(), lr=0.1, amsgrad=True)"
    assert report(made, Target.PILOTAGE).is_complete
    (found,) = [each for each in report(made, Target.POPTORCH).findings if each.severity.is_left_to_do]
    assert (found.line, found.column) == (6, 58)


def test_a_choice_between_optimizers_is_ported_with_a_warning_for_those_that_poptorch_does_not_have():
    made = report(
        "torch.optim.SGD(model.parameters(), lr=1) if plain else torch.optim.Adagrad(model.parameters())",
        Target.POPTORCH,
    )
    assert made.is_complete
    assert "poptorch.optim.SGD(model.parameters(), lr=1) if plain else torch.optim.Adagrad(" in made.files[0].after
    (warning,) = [each for each in made.findings if each.severity is Severity.WARNING and each.rule == "optimizer"]
    assert "Adagrad" in warning.message


def test_an_optimizer_whose_class_is_an_argument_is_found():
    text = """\
import torch
import torch.nn.functional as F
from torch import nn


def fit(model, loader, opt_func=torch.optim.SGD):
    optimizer = opt_func(model.parameters(), 0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


fit(nn.Linear(8, 1), loader, opt_func=torch.optim.Adam)
"""
    assert "optimizer = poptorch.optim.Adam(model.parameters(), 0.1)" in ported_text(text, Target.POPTORCH)
    kept = ported_text(text.replace(", opt_func=torch.optim.Adam", ""), Target.PILOTAGE)
    assert "optimizer = opt_func(model.parameters(), 0.1)\n    training_model = pilotage.training(" in kept
    both = text + "fit(nn.Linear(8, 1), loader)\n"
    (refusal,) = port_texts({Path("script.py"): both}, Target.POPTORCH).findings
    assert refusal.rule == "optimizer-not-found"


def ported_text(text, target):
    return port_texts({Path("script.py"): text}, target).files[0].after
