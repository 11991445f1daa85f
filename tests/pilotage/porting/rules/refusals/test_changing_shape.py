from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

SCRIPT = """\
import torch
import torch.nn.functional as F
from torch import nn


def error_of(output, y):
    mask = y > 0
    weights = torch.ones(4)
    return {}


model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = error_of(model(x), y)
    loss.backward()
    optimizer.step()
"""


def places(expression: str) -> list[tuple[int, int]]:
    report = port_texts({Path("script.py"): SCRIPT.format(expression)}, Target.PILOTAGE)
    return [(each.line, each.column) for each in report.findings if each.rule == "changing-shape"]


@pytest.mark.parametrize(
    "expression",
    [
        "output[mask]",
        "output[~mask]",
        "output[(y > 0) & (y < 2)]",
        "output[y.bool()]",
        "y.nonzero()",
        "torch.masked_select(y, mask)",
    ],
)
def test_elements_picked_by_a_mask_are_refused_where_they_are_picked(expression):
    assert places(f"{expression}.mean()") == [(9, 12)]


@pytest.mark.parametrize(
    "expression", ["output[0]", "output[:, 1:]", "output[y.long()]", "torch.where(mask, output, 0)", "output[weights]"]
)
def test_sizes_that_are_known_stay(expression):
    assert places(f"{expression}.mean()") == []
