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
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model = {wrapped}
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(args.module, model.module.weight)
"""


def report(wrapped: str, target: Target = Target.POPTORCH):
    return port_texts({Path("script.py"): TEXT.format(wrapped=wrapped)}, target)


@pytest.mark.parametrize("wrapped", ["nn.DataParallel(model)", "nn.DataParallel(module=model, device_ids=[0, 1])"])
def test_the_wrapper_goes_and_only_its_own_attribute_with_it(wrapped):
    after = report(wrapped).files[0].after
    assert "DataParallel" not in after
    assert "print(args.module, model.weight)" in after


def test_the_note_names_the_option_of_the_target():
    for target, option in ((Target.POPTORCH, "replicationFactor(n)"), (Target.PILOTAGE, "replicas=n")):
        assert any(option in each.message for each in report("nn.DataParallel(model)", target).findings)
