from __future__ import annotations

from pathlib import Path

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

TEXT = """\
import torch
from torch import nn

model = nn.Linear(1, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    output = model(x)
    loss = criterion(output, y)
    loss.backward()
    optimizer.step()
"""


def ported(text: str, target: Target) -> str:
    return port_texts({Path("script.py"): text}, target).files[0].after


def test_pilotage_joins_a_plain_criterion_without_a_class():
    after = ported(TEXT, Target.PILOTAGE)
    assert "training_model = pilotage.training(model, optimizer, loss=criterion)\n" in after
    assert "class " not in after


def test_poptorch_gets_a_joined_module_and_options():
    after = ported(TEXT, Target.POPTORCH)
    made = "poptorch.trainingModel(ModelWithLoss(model, criterion), options=options, optimizer=optimizer)"
    assert f"options = poptorch.Options()\ntraining_model = {made}\n" in after


def test_popdist_gets_options_of_the_instance_and_leaves_the_scripts_seed():
    after = ported(TEXT, Target.POPDIST)
    assert "if popdist.isPopdistEnvSet():\n    popdist.init()\noptions = popdist.poptorch.Options()\n" in after
    assert "    with torch.random.fork_rng():\n        options.randomSeed(42)" in after


def test_a_long_call_gets_one_argument_in_each_line():
    text = TEXT.replace("criterion", "a_criterion_with_quite_a_long_name_that_fills_most_of_the_line_by_itself")
    after = ported(text, Target.POPTORCH)
    assert "training_model = poptorch.trainingModel(\n    ModelWithLoss(model, a_criterion" in after
    assert "\n    options=options,\n    optimizer=optimizer,\n)\n" in after
