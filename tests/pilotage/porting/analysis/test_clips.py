from __future__ import annotations

import ast

import pytest

from pilotage.porting.analysis.clips import clips_all, clips_of
from pilotage.porting.plan import Plan
from pilotage.porting.target import Target

TEXT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x))


model = Net()
given = {given}
optimizer = torch.optim.SGD(given, lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    {clip}
    optimizer.step()
"""


def planned(project, clip, given="model.parameters()"):
    made = Plan(project(script=TEXT.format(clip=clip, given=given)), Target.PILOTAGE)
    assert not made.refusals, made.refusals
    return made, made.steps[0]


@pytest.mark.parametrize(
    ("clipped", "given"),
    [
        ("model.parameters()", "model.parameters()"),
        ("model.module.parameters()", "model.parameters()"),
        ("list(model.parameters())", "model.parameters()"),
        ("filter(lambda p: p.requires_grad, model.parameters())", "model.parameters()"),
        ("[p for p in model.parameters() if p.requires_grad]", "model.parameters()"),
        ("given", "list(model.parameters())"),
        ("model.parameters()", "[{'params': model.body.parameters(), 'lr': 0.2}, {'params': model.head.parameters()}]"),
        ("optimizer.param_groups[0]['params']", "model.parameters()"),
    ],
)
def test_all_trained_parameters_are_recognised_however_they_are_written(project, clipped, given):
    made, step = planned(project, f"nn.utils.clip_grad_norm_({clipped}, 1.0)", given)
    (clip,) = clips_of(step.step)
    assert clips_all(made.project, step.step, clip, step.optimizers)


@pytest.mark.parametrize(
    ("clipped", "given"),
    [
        ("model.head.parameters()", "model.parameters()"),
        ("[p for p in model.parameters() if p.dim() > 1]", "model.parameters()"),
        (
            "optimizer.param_groups[0]['params']",
            "[{'params': model.body.parameters()}, {'params': model.head.parameters()}]",
        ),
    ],
)
def test_a_part_of_them_is_not_taken_for_all(project, clipped, given):
    made, step = planned(project, f"nn.utils.clip_grad_norm_({clipped}, 1.0)", given)
    (clip,) = clips_of(step.step)
    assert not clips_all(made.project, step.step, clip, step.optimizers)


def test_limit_and_conditions_are_read(project):
    _, step = planned(project, "if limit > 0: nn.utils.clip_grad_value_(model.parameters(), clip_value=limit)")
    (clip,) = clips_of(step.step)
    assert clip.is_by_value
    assert clip.limit is not None
    assert clip.limit.id == "limit"
    assert len(clip.conditions) == 1
    assert not clip.is_otherwise


BOTH = """if scaler is not None:
        if limit: nn.utils.clip_grad_norm_(model.parameters(), limit)
        scaler.step(optimizer)
    else:
        {other}
        optimizer.step()
    """


def test_the_same_clipping_in_both_branches_does_not_depend_on_their_condition(project):
    other = "if limit: nn.utils.clip_grad_norm_(model.parameters(), limit)"
    text = TEXT.format(clip=BOTH.format(other=other), given="model.parameters()").replace(
        "    \n    optimizer.step()", ""
    )
    (clip,) = clips_of(Plan(project(script=text), Target.PILOTAGE).steps[0].step)
    assert [ast.unparse(each) for each in clip.tests] == ["limit"]


def test_clipping_in_one_branch_depends_on_its_condition(project):
    text = TEXT.format(clip=BOTH.format(other="pass"), given="model.parameters()").replace(
        "    \n    optimizer.step()", ""
    )
    (clip,) = clips_of(Plan(project(script=text), Target.PILOTAGE).steps[0].step)
    assert [ast.unparse(each) for each in clip.tests] == ["limit", "scaler is not None"]
