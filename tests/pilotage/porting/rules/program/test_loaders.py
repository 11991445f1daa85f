from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.porting.driver import port_texts
from pilotage.porting.finding import Severity
from pilotage.porting.target import Target

TEXT = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader({given})
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    loss = F.mse_loss(model(x), y){divided}
    loss.backward()
    {condition}optimizer.step(); optimizer.zero_grad()
"""


def report(given: str, target: Target = Target.POPTORCH, **other: str):
    text = TEXT.format(given=given, divided=other.get("divided", ""), condition=other.get("condition", ""))
    return port_texts({Path("script.py"): text}, target)


def loader(given: str, target: Target = Target.POPTORCH, **other: str) -> str:
    (line,) = [each for each in report(given, target, **other).files[0].after.splitlines() if "DataLoader(" in each]
    return line


@pytest.mark.parametrize(
    ("given", "warns"),
    [
        ("data, batch_size=4", True),
        ("data, batch_size=4, drop_last=True", False),
        ("TensorDataset(torch.zeros(64, 8)), batch_size=4", False),
        ("TensorDataset(torch.zeros(66, 8)), batch_size=4", True),
    ],
)
def test_a_warning_comes_only_where_samples_may_be_left_out(given, warns):
    made = report(given)
    warnings = [each for each in made.findings if each.severity is Severity.WARNING]
    assert bool(warnings) is warns
    assert "drop_last=True" in loader(given)


def test_an_explicit_drop_last_is_changed_and_pinned_memory_goes():
    assert loader("data, batch_size=4, drop_last=False, pin_memory=True") == (
        "loader = poptorch.DataLoader(options, data, batch_size=4, drop_last=True)"
    )


def test_drop_last_from_a_dictionary_is_left_to_do_by_hand():
    made = report("data, **{'batch_size': 4, 'drop_last': False}")
    assert [each.severity for each in made.findings if each.rule == "loader"] == [Severity.BY_HAND]


def test_pilotage_keeps_loaders_as_they_are_and_their_last_batch():
    given = "TensorDataset(torch.zeros(66, 8)), batch_size=4, pin_memory=True"
    assert loader(given, Target.PILOTAGE) == f"loader = DataLoader({given})"
    assert not [each for each in report(given, Target.PILOTAGE).findings if each.severity is Severity.WARNING]


STEP = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def step(model, optimizer, i, x, y):
    loss = F.mse_loss(model(x), y) / 8
    loss.backward()
    if (i + 1) % 8 == 0:
        optimizer.step()
        optimizer.zero_grad()


loader = DataLoader(data, batch_size={size}, drop_last=True)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    step(model, optimizer, i, x, y)
"""


@pytest.mark.parametrize(
    ("size", "expected"), [("4", "4 * 8"), ("a + b", "(a + b) * 8"), ("args.size", "args.size * 8")]
)
def test_where_a_loop_does_not_see_the_wrapped_model_the_loader_makes_the_batches_of_an_update(size, expected):
    made = port_texts({Path("script.py"): STEP.format(size=size)}, Target.PILOTAGE)
    assert made.is_complete, [str(each) for each in made.findings]
    assert f"batch_size={expected}, drop_last=True" in made.files[0].after


def test_poptorch_gets_the_accumulation_as_an_option():
    accumulating = {"divided": " / 8", "condition": "if (i + 1) % 8 == 0: "}
    after = report("data, batch_size=4, drop_last=True", Target.POPTORCH, **accumulating).files[0].after
    assert "options.Training.gradientAccumulation(8)\noptions.outputMode(poptorch.OutputMode.All)\n" in after
    assert "loss = training_model(x, y)\n    loss = loss.mean()\n" in after


def test_arguments_in_lines_of_their_own_get_new_lines_and_keep_their_comments():
    text = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

loader = DataLoader(
    dataset,  # all of it
    batch_size=8  # small
)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
    after = port_texts({Path("script.py"): text}, Target.POPTORCH).files[0].after
    assert (
        """\
loader = poptorch.DataLoader(
    options,
    dataset,  # all of it
    drop_last=True,
    batch_size=8  # small
)
"""
        in after
    )
