import dataclasses
import importlib
import inspect
import pkgutil

import pytest
import torch
from torch import nn

import pilotage
from pilotage import optim
from pilotage.errors import ProgramFileError
from pilotage.optim.families import FAMILIES, RULES, family_of
from pilotage.optim.rule import Group, OptimizerPlan, UpdateRule
from pilotage.storage.program_text import program_from_data, program_to_data


def rules_in_the_folder() -> set[type]:
    modules = [
        importlib.import_module(f"{optim.__name__}.{each.name}") for each in pkgutil.iter_modules(optim.__path__)
    ]
    kinds = {kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)}
    return {kind for kind in kinds if kind is not UpdateRule and hasattr(kind, "apply") and hasattr(kind, "initial")}


def test_every_rule_in_the_folder_is_registered():
    assert rules_in_the_folder() == set(RULES.values())
    assert {family.rule for family in FAMILIES} == set(RULES.values())


def test_every_family_is_found_before_its_base_class():
    for family in FAMILIES:
        optimizer = family.optimizer([nn.Parameter(torch.zeros(1))])
        assert family_of(optimizer) is family


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).square().mean()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.optimizer.__name__)
def test_every_family_is_captured_saved_loaded_and_equal_to_its_eager_optimizer(family):
    torch.manual_seed(0)
    plain, wrapped = Network(), Network()
    wrapped.load_state_dict(plain.state_dict())
    eager = family.optimizer(plain.parameters(), lr=0.1)
    training = pilotage.training(wrapped, family.optimizer(wrapped.parameters(), lr=0.1), tier="graph")
    for batch in torch.randn(3, 4, 3):
        loss = plain(batch)
        loss.backward()
        eager.step()
        eager.zero_grad()
        assert torch.equal(training(batch), loss)
    program = training._executor.session.captured
    data, constants = program_to_data(program)
    loaded = program_from_data(data, constants)
    assert loaded.plan == program.plan
    assert type(loaded.plan.groups[0].rule) is family.rule
    training.detach()
    for mine, theirs in zip(wrapped.parameters(), plain.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@dataclasses.dataclass(frozen=True)
class ForgottenRule:
    maximize: bool = False


def test_a_rule_that_was_not_registered_cannot_be_saved():
    torch.manual_seed(0)
    training = pilotage.training(network := Network(), torch.optim.SGD(network.parameters(), lr=0.1), tier="graph")
    training(torch.zeros(4, 3))
    program = training._executor.session.captured
    group = Group(rule=ForgottenRule(), parameters=(), values={})
    with pytest.raises(ProgramFileError, match="ForgottenRule is not in FAMILIES"):
        program_to_data(dataclasses.replace(program, plan=OptimizerPlan(groups=(group,))))
