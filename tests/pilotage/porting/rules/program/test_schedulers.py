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
