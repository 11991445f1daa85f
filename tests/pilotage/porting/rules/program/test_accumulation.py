from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

TEXT = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

steps = 4
loader = DataLoader(data, batch_size=2, drop_last=True)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, {length})
total = 0.0
for i, (x, y) in enumerate(loader):
    loss = F.mse_loss(model(x), y)
    {divided}
    loss.backward()
    if (i + 1) % steps == 0:
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    total += loss.item()
print(total / len(loader))
"""


def ported(target: Target, divided: str = "loss = loss / steps", length: str = "len(loader) // steps") -> str:
    report = port_texts({Path("script.py"): TEXT.format(divided=divided, length=length)}, target)
    assert report.is_complete, [str(each) for each in report.findings]
    return report.files[0].after


def test_pilotage_joins_the_batches_of_an_update_and_leaves_the_loader():
    after = ported(Target.PILOTAGE)
    assert "loader = DataLoader(data, batch_size=2, drop_last=True)\n" in after
    assert "for i, (x, y) in enumerate(pilotage.batches(loader, training_model)):\n" in after
    assert 'gradient_accumulation=steps, outputs="all")' in after
    assert "StepLR(optimizer, len(loader) // steps)" in after
    assert "print(total / len(pilotage.batches(loader, training_model)))" in after


def test_a_schedule_counts_updates_although_the_length_of_poptorchs_loader_does():
    assert "StepLR(optimizer, len(loader))" in ported(Target.POPTORCH)
    assert "StepLR(optimizer, 3 * len(loader) * steps)" in ported(Target.POPTORCH, length="3 * len(loader)")
    assert "print(total / len(loader))" in ported(Target.POPTORCH)


def test_what_follows_the_step_of_a_schedule_leaves_the_condition_with_it():
    assert "    scheduler.step()\n    training_model.setOptimizer(optimizer)\n" in ported(Target.POPTORCH)


@pytest.mark.parametrize(
    "divided",
    ["loss = loss / steps", "loss /= steps", "if steps > 1: loss = loss / steps", "if steps > 1: loss /= steps"],
)
@pytest.mark.parametrize("target", [Target.POPTORCH, Target.PILOTAGE])
def test_the_division_by_their_number_goes_wherever_it_is(target, divided):
    after = ported(target, divided)
    assert "/ steps" not in after.replace("len(loader) // steps", "")
    assert "/= steps" not in after
    assert "sum" not in after.lower()


def test_without_a_division_the_gradients_are_summed():
    assert 'reduction="sum"' in ported(Target.PILOTAGE, divided="pass")
    assert "poptorch.ReductionType.Sum" in ported(Target.POPTORCH, divided="pass")


def test_a_number_that_changes_is_refused():
    text = TEXT.format(divided="loss = loss / steps", length="3").replace(
        "    loss = F.", "    steps = i + 1\n    loss = F."
    )
    report = port_texts({Path("script.py"): text}, Target.PILOTAGE)
    (found,) = [each for each in report.findings if each.severity.is_left_to_do]
    assert found.rule == "accumulation"
    assert not report.files[0].is_changed


def test_a_number_that_gets_its_name_after_the_loader_is_written_itself():
    text = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=8)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
passes = 4
for i, (x, y) in enumerate(loader):
    loss = F.mse_loss(model(x), y)
    loss = loss / passes
    loss.backward()
    if (i + 1) % passes == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
    report = port_texts({Path("script.py"): text}, Target.POPTORCH)
    after = report.files[0].after
    assert report.is_complete
    assert "options.Training.gradientAccumulation(4)\n" in after
    assert after.index("gradientAccumulation(4)") < after.index("loader = poptorch.DataLoader(options")
    assert "loss = loss\n" not in after


SHOWN = TEXT.replace("    total += loss.item()\n", "    {shown}\n")


@pytest.mark.parametrize("target", [Target.POPTORCH, Target.PILOTAGE])
@pytest.mark.parametrize(
    ("shown", "after"),
    [
        ("total += loss.item() * steps", "total += loss.item()"),
        ("total += steps * float(loss)", "total += float(loss)"),
        ("print(f'{{loss.item() * steps:.4f}}')", "print(f'{loss.item():.4f}')"),
        ("total += loss.item() * len(x) * steps / 3", "total += loss.item() * len(x) / 3"),
        ("total += loss.item() * 2", "total += loss.item() * 2"),
        ("total += i * steps", "total += i * steps"),
    ],
)
@pytest.mark.parametrize("divided", ["loss = loss / steps", "loss /= steps"])
def test_a_loss_that_is_no_longer_divided_is_not_multiplied_again(target, shown, after, divided):
    text = SHOWN.replace("{shown}", shown).format(divided=divided, length=1)
    report = port_texts({Path("script.py"): text}, target)
    assert f"    {after}\n" in report.files[0].after


def test_a_loss_that_was_not_divided_keeps_its_factor():
    text = SHOWN.replace("{shown}", "total += loss.item() * steps").format(divided="x = x", length=1)
    for before in ("loss.backward()", "(loss / steps).backward()"):
        report = port_texts({Path("script.py"): text.replace("loss.backward()", before)}, Target.PILOTAGE)
        assert "total += loss.item() * steps\n" in report.files[0].after
