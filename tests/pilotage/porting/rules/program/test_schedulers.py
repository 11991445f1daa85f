from __future__ import annotations

from pathlib import Path

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
"""
LOOP = """\
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""


def ported(text: str, target: Target = Target.POPTORCH) -> str:
    return port_texts({Path("script.py"): HEAD + text}, target).files[0].after


def test_assignments_to_groups_are_followed_too():
    text = f"""
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 / (epoch + 1)
{LOOP}"""
    after = ported(text)
    assert 'group["lr"] = 0.1 / (epoch + 1)\n    training_model.setOptimizer(optimizer)\n' in after
    assert "setOptimizer" not in ported(text, Target.PILOTAGE)


def test_a_change_out_of_sight_is_read_before_the_loop():
    text = f"""
def adjust(optimizer, epoch):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 / (epoch + 1)


model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    adjust(optimizer, epoch)
{LOOP}"""
    assert "    training_model.setOptimizer(optimizer)\n    for x, y in loader:" in ported(text)


def test_the_schedule_of_another_optimizer_is_left_alone():
    text = f"""
model = nn.Linear(1, 1)
other = torch.optim.SGD([torch.zeros(1)], lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(other, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
{LOOP}    schedule.step()
"""
    assert "setOptimizer" not in ported(text)


def test_a_warm_up_that_begins_after_the_model_was_wrapped_is_read():
    text = f"""
def train(model, optimizer, epoch):
    schedule = None
    if epoch == 0:
        count = 5
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=count)
{LOOP}        if schedule is not None:
            schedule.step()


model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train(model, optimizer, epoch)
"""
    wanted = "total_iters=count)\n        training_model.setOptimizer(optimizer)\n"
    assert wanted in ported(text)
    without = text.replace("LinearLR(optimizer, 0.1, total_iters=count)", "StepLR(optimizer, count)")
    assert "StepLR(optimizer, count)\n    for" in ported(without)


def test_a_warm_up_that_begins_before_the_model_is_wrapped_is_left_alone():
    text = f"""
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=30)
for epoch in range(3):
{LOOP}        schedule.step()
"""
    assert ported(text).count("setOptimizer") == 1


def test_a_trainer_that_makes_its_schedule_in_fit_sends_the_first_rate():
    text = """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fit(self, loader):
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=len(loader))
        for batch in loader:
            self.training_step(batch)

    def training_step(self, batch):
        x, y = batch
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
"""
    after = ported(text)
    assert "total_steps=len(loader))\n        self.training_model.setOptimizer(self.optimizer)\n" in after
