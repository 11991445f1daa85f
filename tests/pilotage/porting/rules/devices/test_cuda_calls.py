from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

TEXT = """\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(8, 1)
{line}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""


def ported(line: str) -> str:
    report = port_texts({Path("script.py"): TEXT.format(line=line)}, Target.PILOTAGE)
    assert report.is_complete
    return report.files[0].after.partition("model = nn.Linear(8, 1)\n")[2].partition("optimizer =")[0]


def test_the_number_of_gpus_is_one_where_the_original_starts_a_process_for_each():
    assert ported("count = torch.cuda.device_count()") == "count = 0\n"
    text = TEXT.format(line="count = torch.cuda.device_count()")
    text = text.replace("import torch\n", "import torch\nimport torch.multiprocessing as mp\n", 1)
    text += "\n\ndef other(rank): ...\n\n\nmp.spawn(other, nprocs=count)\n"
    after = port_texts({Path("script.py"): text}, Target.PILOTAGE).files[0].after
    assert "count = 1\n" in after
    assert "other(0)" in after


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("if torch.cuda.is_available(): model.cuda()", ""),
        ("if torch.cuda.is_available():\n    model.cuda()\n    torch.cuda.synchronize()", ""),
        ("workers = 4 if torch.cuda.is_available() else (1 + 1)", "workers = (1 + 1)\n"),
        ("ready = torch.accelerator.is_available()", "ready = False\n"),
        ("if torch.cuda.is_available() and count(): model.cuda()", "if False and count():\n    pass\n"),
    ],
)
def test_checks_for_cuda_are_resolved_and_empty_blocks_are_removed(line, expected):
    assert ported(line) == expected
