from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

TEXT = """\
import torch
import torch.nn.functional as F
from torch import nn

limit = 1.0
model = nn.Linear(8, 2)
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        {clip}
        optimizer.step()
"""


def report(clip: str, target: Target = Target.PILOTAGE, optimizer: str = "SGD"):
    return port_texts({Path("script.py"): TEXT.format(clip=clip, optimizer=optimizer)}, target)


def refusal(clip: str, target: Target = Target.PILOTAGE, optimizer: str = "SGD") -> str:
    made = report(clip, target, optimizer)
    assert not made.files[0].is_changed
    (found,) = [each for each in made.findings if each.severity.is_left_to_do]
    assert found.remedy
    return found.message


def test_pilotage_gets_the_limit_as_an_option():
    after = report("nn.utils.clip_grad_norm_(model.parameters(), limit)").files[0].after
    assert "pilotage.training(ModelWithLoss(model), optimizer, clip_grad_norm=limit)" in after
    after = report("nn.utils.clip_grad_value_(model.parameters(), 0.5)").files[0].after
    assert "pilotage.training(ModelWithLoss(model), optimizer, clip_grad_value=0.5)" in after
    assert "clip_grad_value_" not in after


def test_a_condition_on_a_setting_becomes_part_of_the_option():
    after = report("if limit: nn.utils.clip_grad_norm_(model.parameters(), limit)").files[0].after
    assert "clip_grad_norm=limit or None)" in after


@pytest.mark.parametrize(
    ("clip", "message"),
    [
        ("nn.utils.clip_grad_norm_(model.parameters(), 1.0, norm_type=1)", "Only the Euclidean norm"),
        ("nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)", "does not raise an error"),
        ("norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0); print(norm)", "The norm of the gradients is used"),
        ("nn.utils.clip_grad_norm_(model.parameters(), 1.0 / (epoch + 1))", "changes while the script trains"),
        (
            "nn.utils.clip_grad_norm_(model.parameters(), 1.0); nn.utils.clip_grad_value_(model.parameters(), 0.1)",
            "clipped more than once",
        ),
        ("nn.utils.clip_grad_norm_([model.weight], 1.0)", "Only some of the trained parameters"),
    ],
)
def test_clipping_without_an_equivalent_option_is_refused(clip, message):
    assert message in refusal(clip)


def test_clipping_with_an_unused_norm_is_accepted():
    assert report("norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)").is_complete
    assert report("_ = nn.utils.clip_grad_norm_(model.parameters(), 1.0)", Target.POPTORCH).is_complete


def test_poptorch_refuses_clipping_by_value_and_its_rmsprop_refuses_all():
    assert "by value" in refusal("nn.utils.clip_grad_value_(model.parameters(), 0.5)", Target.POPTORCH)
    assert "RMSprop" in refusal("nn.utils.clip_grad_norm_(model.parameters(), 1.0)", Target.POPTORCH, "RMSprop")
    assert report("nn.utils.clip_grad_norm_(model.parameters(), 1.0)", Target.PILOTAGE, "RMSprop").is_complete
