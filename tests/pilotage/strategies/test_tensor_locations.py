from __future__ import annotations

import pytest
import torch
from torch import nn

from pilotage.devices.cpu import CpuBackend
from pilotage.devices.cuda import CudaBackend
from pilotage.devices.registry import Choice
from pilotage.errors import OptionError
from pilotage.events import Noted, Warned
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.choices import Tier
from pilotage.options.execution import Execution
from pilotage.options.locations import Locations
from pilotage.program.layout import StateLayout
from pilotage.program.program import Program
from pilotage.program.structure import flatten
from pilotage.strategies.tensor_locations import (
    notice_of_locations,
    optimizer_shards_of,
    possible_locations,
    refuse_slots_on_host,
)

ALL = Locations(activations=1, optimizer=2, shared_optimizer=3)
CARD, PROCESSOR = (Choice(backend, Tier.GRAPH, "a test asks for it") for backend in (CudaBackend(), CpuBackend()))
EAGER_CARD = Choice(CudaBackend(), Tier.EAGER, "a test asks for it")


@pytest.mark.parametrize(
    ("choice", "trains", "expected"),
    [
        (CARD, True, ALL),
        (CARD, False, Locations(optimizer=2, shared_optimizer=3)),
        (EAGER_CARD, True, Locations(optimizer=2, shared_optimizer=3)),
        (PROCESSOR, True, Locations(shared_optimizer=3)),
    ],
    ids=["card", "inference", "eager", "processor"],
)
def test_possible_locations_depend_on_device_tier_and_training(choice, trains, expected):
    assert possible_locations(ALL, choice, trains=trains) == expected


def test_settings_without_effect_are_reported():
    assert notice_of_locations(ALL, CARD, trains=True) is None
    assert notice_of_locations(Locations(), PROCESSOR, trains=True) is None
    assert isinstance(notice_of_locations(ALL, PROCESSOR, trains=True), Noted)
    assert isinstance(notice_of_locations(ALL, EAGER_CARD, trains=True), Warned)
    assert notice_of_locations(ALL, EAGER_CARD, trains=False) is None


def test_state_on_the_host_is_refused_on_several_cards():
    layout = StateLayout(parameters={}, buffers={}, slots_on_host=4)
    program = Program(layout=layout, computations={}, arguments=flatten(((), {}))[1], inputs=(), outputs=None)
    with pytest.raises(OptionError, match="several cards"):
        refuse_slots_on_host(program)


def test_optimizer_state_is_sharded_only_over_several_training_instances():
    module = nn.Linear(2, 3)
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    plan = read_optimizer(torch.optim.Adam(module.parameters()), names)
    execution = Execution(batching=Batching(instances=2), instance=1, locations=Locations(shared_optimizer=4))
    shares = optimizer_shards_of(module, plan, execution, lambda tensors, source: None)
    assert shares is not None
    assert (shares.owners, shares.instance) == ({"weight": 0}, 1)
    assert optimizer_shards_of(module, None, execution, lambda tensors, source: None) is None
    assert optimizer_shards_of(module, plan, execution, None) is None
    assert optimizer_shards_of(module, plan, Execution(), lambda tensors, source: None) is None
