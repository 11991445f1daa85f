from __future__ import annotations

from pathlib import Path

from pilotage.porting.driver import port_texts
from pilotage.porting.inlining import with_inlined_steps
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

TEXT = """\
import torch
import torch.nn.functional as F
from torch import nn


class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def forward_pass(self, batch):
        batch = {key: torch.tensor(value) for key, value in batch.items()}
        scores = self.net(batch["image"])
        return scores, batch["label"]

    def train_step(self, arrays):
        self.opt.zero_grad()
        output, label = self.forward_pass(arrays)
        loss = F.mse_loss(output, label)
        loss.backward()
        self.opt.step()
        return loss.item()
"""


def test_arrays_become_tensors_before_the_call_and_the_model_is_inside_of_it():
    report = port_texts({Path("script.py"): TEXT}, Target.POPTORCH)
    (file,) = report.files
    assert report.is_complete, [str(each) for each in report.findings]
    assert file.before == TEXT
    expected = """\
        batch = arrays
        batch = {key: torch.tensor(value) for key, value in batch.items()}
        scores, loss = self.training_model(batch["image"], batch["label"])
        return loss.item()
"""
    assert file.after.endswith(expected)
    assert "def forward_pass(self, batch):" in file.after


def test_findings_name_the_lines_of_the_file():
    text = TEXT + "\n    def other(self):\n        self.net.weight.register_hook(print)\n"
    (finding,) = [
        each for each in port_texts({Path("a.py"): text}, Target.POPTORCH).findings if each.severity.is_left_to_do
    ]
    assert (finding.line, finding.column) == (25, 9)


def test_a_function_that_makes_no_tensors_stays_a_function():
    source = Source(Path("script.py"), TEXT.replace("torch.tensor(value)", "value"))
    assert with_inlined_steps([source]) == [source]


def test_a_function_whose_variables_would_clash_stays_a_function():
    source = Source(Path("script.py"), TEXT.replace("return loss.item()", "return loss.item(), batch"))
    text = source.text.replace("        loss.backward()", "        print(scores)\n        loss.backward()")
    source = Source(Path("script.py"), text)
    assert with_inlined_steps([source]) == [source]
