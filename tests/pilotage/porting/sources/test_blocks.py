from __future__ import annotations

from pathlib import Path

from pilotage.porting.driver import port_texts
from pilotage.porting.porting import Porting
from pilotage.porting.project import Project
from pilotage.porting.sources.blocks import fill_empty_blocks
from pilotage.porting.sources.edits import apply_edits
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target


def emptied(text: str) -> str:
    source = Source(Path("a.py"), text)
    porting = Porting(Project([source]), Target.POPTORCH)
    for statement in source.tree.body[0].body:
        porting.remove(source, statement, "some")
    fill_empty_blocks(porting, source)
    return apply_edits(text, porting.edits(source))


def test_a_condition_without_statements_goes():
    assert emptied("if x:\n    a\n    b\nc\n") == "c\n"


def test_a_condition_with_an_else_gets_a_pass():
    assert emptied("if x:\n    a\nelse:\n    b\n") == "if x:\n    pass\nelse:\n    b\n"


def test_a_function_gets_a_pass():
    assert emptied("def f():\n    a\n") == "def f():\n    pass\n"


def test_a_chain_of_conditions_goes_when_all_its_branches_do():
    text = """\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(1, 1)
if torch.cuda.is_available():
    device = torch.device("cuda")
elif torch.backends.mps.is_available():
    device = torch.device("mps")
else:
    device = torch.device("cpu")
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x.to(device)), y.to(device))
    loss.backward()
    optimizer.step()
"""
    after = port_texts({Path("script.py"): text}, Target.PILOTAGE).files[0].after
    assert "model = nn.Linear(1, 1)\noptimizer = torch.optim.SGD(" in after
