from __future__ import annotations

import pytest

from pilotage.porting.analysis.joint import joint_of
from pilotage.porting.analysis.refusal import Refused
from pilotage.porting.analysis.steps import find_steps

STEP = """
    model = nn.Linear(4, 2)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for batch in loader:
            optimizer.zero_grad()
            {body}
            loss.backward()
            optimizer.step()
        print(loss.item())
    """


def joint(project, body: str):
    made = project(script=STEP.format(body="\n            ".join(body.splitlines())))
    (step,), _ = find_steps(made)
    return joint_of(made, step)


def test_modules_are_attributes_and_parts_of_a_batch_are_inputs(project):
    found = joint(project, 'output = model(batch["image"])\nloss = criterion(output, batch["label"])')
    assert found.dependencies == {"model": "model", "criterion": "criterion"}
    assert [(each.name, each.given) for each in found.inputs] == [
        ("image", 'batch["image"]'),
        ("label", 'batch["label"]'),
    ]
    assert found.outputs == ("output", "loss")
    assert found.is_torch_loss


def test_whole_batches_are_passed_with_their_stars(project):
    found = joint(project, "output = model(**batch)\nloss = output.loss")
    assert [(each.stars, each.name) for each in found.inputs] == [("**", "batch")]
    assert not found.is_torch_loss


def test_a_sum_of_losses_is_not_found_by_itself(project):
    found = joint(project, "x, y = batch\nloss = criterion(model(x), y) + 0.1 * model.weight.norm()")
    assert not found.is_torch_loss
    assert found.criterion is None


def test_the_plainest_step_names_its_criterion(project):
    found = joint(project, "x, y = batch\noutput = model(x)\nloss = criterion(output, y)")
    assert found.criterion == "criterion"


def test_a_number_that_an_outer_loop_changes_is_refused(project):
    with pytest.raises(Refused) as refused:
        joint(project, "x, y = batch\nloss = criterion(model(x), y) * epoch")
    assert (refused.value.refusal.rule, refused.value.refusal.detail) == ("changing-value", "epoch")
