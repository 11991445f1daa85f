from types import SimpleNamespace

import torch

from pilotage.proof.watching.loaders import Load
from pilotage.proof.watching.programs import _parameters, _rates, _share_of


def test_a_call_of_one_update_has_its_whole_batch():
    assert _share_of(["load"], 0, 1) == ["load"]
    assert _share_of([], 0, 4) == []


def test_a_call_of_several_updates_is_divided():
    load = Load(0, 0, list(range(8)), 8)
    assert [each.indices for each in _share_of([load], 1, 4)] == [[2, 3]]


def test_the_rates_of_a_plan_are_those_of_its_groups():
    group = SimpleNamespace(values={"lr": 0.5})
    assert _rates(SimpleNamespace(groups=(group, group))) == [0.5, 0.5]


def test_a_program_that_has_left_its_device_shows_the_weights_of_its_module():
    module = torch.nn.Linear(2, 1)
    program = SimpleNamespace(layout=SimpleNamespace(trained=("weight",)))
    session = SimpleNamespace(program=program, state=None)
    assert [name for name, _ in _parameters(SimpleNamespace(module=module), session)] == ["weight"]
    session = SimpleNamespace(program=program, state=1, whole_weights=lambda: {"weight": 1, "bias": 2})
    assert list(_parameters(None, session)) == [("weight", 1)]
