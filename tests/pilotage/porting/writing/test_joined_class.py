from __future__ import annotations

from pathlib import Path

from pilotage.porting.driver import port_texts
from pilotage.porting.plan import Plan
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target
from pilotage.porting.writing.joined_class import JoinedClass

TEXT = """\
import torch
from torch import nn


class Trainer:
    def __init__(self, device):
        self._net = nn.Linear(4, 1)
        self.weight = 0.5
        self.opt = torch.optim.SGD(self._net.parameters(), lr=0.1)

    def fit(self, loader, device):
        for i, batch in enumerate(loader):
            # Scores of the batch.
            out = self._net(batch["x"].to(device))
            # Their mean.
            self.loss = (self.weight * out.mean()) / 4
            self.loss.backward()
            if (i + 1) % 4 == 0:
                self.opt.step()
                self.opt.zero_grad()
"""


def test_names_are_replaced_moves_and_divisions_go_and_comments_stay():
    plan = Plan(Project([Source(Path("script.py"), TEXT)]))
    (planned,) = plan.steps
    written = JoinedClass(plan.project, planned, {}, "  ")
    assert written.arguments() == ["self._net", "self.weight"]
    assert (
        written.text("nn.Module", "mark({})")
        == '''\
class ModelWithLoss(nn.Module):
  """The model and its loss as one module, so that a training step is one call."""

  def __init__(self, net, weight):
    super().__init__()
    self.net = net
    self.weight = weight

  def forward(self, x):
    out = self.net(x)
    # Their mean.
    loss = (self.weight * out.mean())
    return out, mark(loss)
'''
    )


def test_what_is_inlined_is_made_by_the_class_itself():
    plan = Plan(Project([Source(Path("script.py"), TEXT)]))
    text = JoinedClass(plan.project, plan.steps[0], {"self.weight": "0.5"}, "    ").text("nn.Module", None)
    assert "def __init__(self, net):" in text
    assert "self.weight = 0.5\n" in text
    assert "return out, loss\n" in text


def test_gradients_that_are_switched_by_a_condition_are_switched_on():
    text = """\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for phase in ("train", "val"):
    is_train = phase == "train"
    for x, y in loader:
        optimizer.zero_grad()
        with torch.set_grad_enabled(is_train):
            loss = F.mse_loss(model(x), y)
        if is_train:
            loss.backward()
            optimizer.step()
"""
    after = port_texts({Path("script.py"): text}, Target.POPTORCH).files[0].after
    assert "def forward(self, x, y):\n        with torch.enable_grad():\n" in after
    assert "loss = training_model(x, y)\n" in after
