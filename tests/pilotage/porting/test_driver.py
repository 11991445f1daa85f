from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.errors import PortingError
from pilotage.porting.driver import port_paths, port_texts
from pilotage.porting.target import Target

MODEL = """\
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)  # scores
"""
TRAIN = """\
import torch
import torch.nn.functional as F
from model import Net

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # plain
for x, y in loader:
    # One step.
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""


def ported(text: str, target: Target = Target.POPTORCH) -> str:
    return port_texts({Path("script.py"): text}, target).files[0].after


def test_comments_and_layout_outside_of_the_edits_stay():
    text = "x = [1,\n     2]   # odd\n\n\n\n" + TRAIN + "print( 'done' )  # end\n"
    after = ported(text)
    assert after.startswith("x = [1,\n     2]   # odd\n\n\n\n")
    assert "lr=0.1)  # plain\n" in after
    assert after.endswith("print( 'done' )  # end\n")


def test_a_second_port_changes_nothing():
    once = ported(TRAIN)
    assert once != TRAIN
    assert ported(once) == once


def test_line_ends_of_windows_stay():
    after = ported(TRAIN.replace("\n", "\r\n"))
    assert after.replace("\r\n", "\n") == ported(TRAIN)
    assert "\n" not in after.replace("\r\n", "")


def test_a_refused_file_and_those_it_imports_stay_as_they_are():
    train = TRAIN.replace("    optimizer.step()", "    model.weight.grad.zero_()\n    optimizer.step()")
    model = MODEL.replace("return self.layer(x)", "return self.layer(x.cuda())")
    other = TRAIN.replace("from model import Net", "from torch import nn").replace("Net()", "nn.Linear(4, 2)")
    texts = {Path("p/train.py"): train, Path("p/model.py"): model, Path("p/other.py"): other}
    report = port_texts(texts, Target.POPTORCH)
    changed = {file.path.name for file in report.files if file.is_changed}
    assert changed == {"other.py"}
    assert not report.is_complete


def test_files_that_only_hold_models_lose_their_device_code_with_the_rest():
    model = MODEL.replace("return self.layer(x)", "return self.layer(x.cuda())")
    report = port_texts({Path("p/train.py"): TRAIN, Path("p/model.py"): model}, Target.POPTORCH)
    assert [file.after for file in report.files][1] == MODEL
    assert report.is_complete


def test_invalid_python_is_refused_with_its_place():
    with pytest.raises(PortingError, match=r"^script\.py:2:\d+: this is not valid Python"):
        ported("import torch\nfor\n")


def test_a_script_without_training_is_left_alone():
    text = "import torch\nx = torch.zeros(3).cuda()\n"
    assert ported(text) == text


def test_paths_are_read_from_disk(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(TRAIN)
    report = port_paths([tmp_path], Target.PILOTAGE)
    assert [file.path.name for file in report.files] == ["model.py", "train.py"]
    assert (tmp_path / "train.py").read_text() == TRAIN
