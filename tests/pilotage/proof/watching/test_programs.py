import weakref
from types import SimpleNamespace

import torch

from pilotage.proof.watching.loaders import Load
from pilotage.proof.watching.programs import _parameters, _rates, _share_of, _TrainedWeights


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


def test_the_weights_of_a_program_are_listed_again_for_a_new_state():
    lists = []

    def whole_weights():
        lists.append({"weight": torch.zeros(len(lists) + 1)})
        return lists[-1]

    program = SimpleNamespace(layout=SimpleNamespace(trained=("weight",)))
    session = SimpleNamespace(program=program, state="first", whole_weights=whole_weights)
    weights = _TrainedWeights(None, session)
    assert weights() is weights()
    session.state = "second"
    assert [len(tensor) for _, tensor in weights()] == [2]


def test_the_listed_weights_of_a_program_are_freed_with_its_state():
    held = {"weight": torch.zeros(3)}
    program = SimpleNamespace(layout=SimpleNamespace(trained=("weight",)))
    session = SimpleNamespace(program=program, state="first", whole_weights=lambda: held)
    weights = _TrainedWeights(None, session)
    assert weights()
    alive = weakref.ref(held["weight"])
    held.clear()
    weights.let_go()
    assert alive() is None
