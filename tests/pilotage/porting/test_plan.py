from __future__ import annotations

from pathlib import Path

from pilotage.porting.plan import Plan
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

TEXT = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

train = DataLoader(a, batch_size=4)
test = DataLoader(b, batch_size=4)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in test:
            scores = model(x)
"""


def plan(text: str = TEXT) -> Plan:
    return Plan(Project([Source(Path("script.py"), text)]))


def test_a_script_has_steps_evaluations_and_the_loaders_of_each():
    made = plan()
    (step,), (evaluation,) = made.steps, made.evaluations
    assert (step.name, evaluation.name) == ("training_model", "inference_model")
    first, second = made.loaders
    assert (first.steps, first.evaluations) == ((step.step,), ())
    assert (second.steps, second.evaluations) == ((), (evaluation.evaluation,))
    assert made.site_of(step)[0].name == "training_model"
    assert not made.refusals


def test_an_evaluation_whose_batches_cannot_be_distinguished_stays_on_the_host():
    text = TEXT.replace(
        "for x, y in test:\n            scores = model(x)", "for batch in test:\n            model(**batch)"
    )
    assert plan().evaluations
    assert not plan(text).evaluations


def test_class_names_of_the_script_are_not_used_again():
    made = plan("class ModelWithLoss: ...\n\n" + TEXT)
    assert made.steps[0].class_name == "ModelWithLoss2"
