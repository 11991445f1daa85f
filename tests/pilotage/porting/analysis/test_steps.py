from __future__ import annotations

import ast

import pytest

from pilotage.porting.analysis.steps import find_steps

STEP = """
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        {body}
    """


def step_of(project, body: str):
    lines = "\n        ".join(body.strip().splitlines())
    (step,), refusals = find_steps(project(script=STEP.format(body=lines)))
    assert not refusals
    return step


def texts(nodes) -> list[str]:
    return [ast.unparse(node) for node in nodes]


def test_the_region_goes_from_the_models_call_to_the_loss(project):
    step = step_of(
        project,
        """
x = x.view(-1, 4)
optimizer.zero_grad()
scores = model(x)
right = (scores.argmax(1) == y).sum()
loss = F.cross_entropy(scores, y)
loss.backward()
optimizer.step()
""",
    )
    assert texts(step.region) == ["scores = model(x)", "loss = F.cross_entropy(scores, y)"]
    assert texts(step.later) == ["right = (scores.argmax(1) == y).sum()"]
    assert texts(step.removed) == ["optimizer.zero_grad()", "loss.backward()", "optimizer.step()"]
    assert step.models == ("model",)


def test_both_branches_of_a_switch_for_mixed_precision_are_one_step(project):
    step = step_of(
        project,
        """
loss = F.cross_entropy(model(x), y)
optimizer.zero_grad()
if scaler is not None:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
else:
    loss.backward()
    optimizer.step()
""",
    )
    assert step.condition is None
    assert isinstance(step.anchor, ast.If)
    assert len(step.removed) == 2


def test_a_step_that_is_made_under_a_condition_keeps_the_condition(project):
    step = step_of(
        project,
        """
loss = F.cross_entropy(model(x), y)
if training:
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    )
    assert step.condition is step.anchor


def test_accumulation_is_recognised_by_its_condition(project):
    text = """
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader, start=1):
        loss = F.cross_entropy(model(x), y) / 4
        loss.backward()
        if i % 4 == 0 or i == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    """
    (step,), _ = find_steps(project(script=text))
    assert step.accumulation is not None
    assert ast.unparse(step.accumulation.count) == "4"
    assert step.accumulation.has_tail


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("loss = F.mse_loss(model(x), y)\nloss.backward(retain_graph=True)\noptimizer.step()", "second-backward"),
        ("loss = F.mse_loss(model(x), y)\nloss.backward(torch.ones(1))\noptimizer.step()", "manual-gradients"),
        ("loss = F.mse_loss(model(x), y) * float(model(x).sum())\nloss.backward()\noptimizer.step()", None),
        ("a = model(x)\nloss = a.sum() * int(a.max())\nloss.backward()\noptimizer.step()", "loss-from-item"),
        ("loss = compute()\nloss.backward()\noptimizer.step()", "model-not-found"),
        ("loss = F.mse_loss(model(x), y)\nloss.backward()", "no-update"),
    ],
)
def test_what_no_program_can_do_is_refused_by_name(project, body, rule):
    lines = "\n        ".join(body.splitlines())
    steps, refusals = find_steps(project(script=STEP.format(body=lines)))
    assert [each.rule for each in refusals] == ([rule] if rule else [])
    assert bool(steps) == (rule is None)


def test_a_closure_is_a_step_unless_its_optimizer_may_call_it_again(project):
    text = """
    model = nn.Linear(4, 2)
    optimizer = torch.optim.{}(model.parameters(), lr=0.1)
    for x, y in loader:
        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss
        loss = optimizer.step(closure)
    """
    (step,), _ = find_steps(project(script=text.format("Adam")))
    assert ast.unparse(step.place) == "loss = optimizer.step(closure)"
    _, (refusal,) = find_steps(project(script=text.format("LBFGS")))
    assert refusal.rule == "optimizer-closure"
