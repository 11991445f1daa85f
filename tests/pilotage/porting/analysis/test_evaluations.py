from __future__ import annotations

import ast

from pilotage.porting.analysis.evaluations import find_evaluations


def found(project, text: str) -> list[str]:
    return [ast.unparse(call) for each in find_evaluations(project(script=text), []) for call in each.calls]


LOADER = "loader = DataLoader(data, batch_size=4)\n    model = nn.Linear(1, 1)\n"


def test_a_loop_over_a_loader_in_evaluation_mode_is_one(project):
    text = f"""
    {LOADER}
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            scores = model(x)
            error = F.mse_loss(scores, y)
    """
    assert found(project, text) == ["model(x)"]


def test_comprehensions_and_decorated_functions_count_too(project):
    text = f"""
    {LOADER}
    @torch.no_grad()
    def evaluate(net, batches):
        net.eval()
        return [net(x) for x, y in batches]

    evaluate(model, loader)
    """
    assert found(project, text) == ["net(x)"]


def test_loops_over_other_things_and_loops_that_train_are_none(project):
    text = f"""
    {LOADER}
    model.eval()
    with torch.no_grad():
        for i in range(3):
            model(i)
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()
    for x, y in loader:
        loss = training_model(x, y)
        model(x)
    """
    assert found(project, text) == []


def test_what_an_earlier_port_has_converted_is_left(project):
    text = f"""
    {LOADER}
    model.eval()
    for x, y in loader:
        scores = inference_model(x) if len(x) == loader.batch_size else model(x)
    """
    assert found(project, text) == []
