from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

SCRIPT = """\
import torch
import torch.nn.functional as F
from torch import nn

device = "cuda"
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in loader:
    {}
    x, y = batch
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""


def ported(statement: str) -> str:
    after = port_texts({Path("script.py"): SCRIPT.format(statement)}, Target.PILOTAGE).files[0].after
    return after.partition("for batch in loader:\n")[2].partition("x, y = batch")[0].strip()


@pytest.mark.parametrize(
    "statement",
    [
        "batch = [each.to(device) for each in batch]",
        "batch = tuple(each.to(device) for each in batch)",
        "batch = {k: v.to(device) for k, v in batch.items()}",
        "batch = [{k: v.to(device) if torch.is_tensor(v) else v for k, v in t.items()} for t in batch]",
    ],
)
def test_statements_that_only_moved_a_batch_go(statement):
    assert ported(statement) == ""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("batch = [each.to(device) for each in pairs]", "batch = [each for each in pairs]"),
        ("batch = [each.to(device) for each in batch if each]", "batch = [each for each in batch if each]"),
        ("batch = {k: v.to(device)[0] for k, v in batch.items()}", "batch = {k: v[0] for k, v in batch.items()}"),
    ],
)
def test_statements_that_do_more_stay(statement, expected):
    assert ported(statement) == expected
