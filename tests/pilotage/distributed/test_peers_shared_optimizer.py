"""Instances that each keep a shard of the optimizer's state train as if each kept all of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from pilotage.distributed.peers import peers_here
from pilotage.errors import OptionError
from pilotage.optim.lamb import Lamb
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.execution import Execution
from pilotage.options.locations import Locations
from pilotage.runtime.executor import Executor
from pilotage.runtime.stored import store

pytestmark = pytest.mark.long


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x):
        return functional.mse_loss(self.layers(x), torch.ones(len(x), 3))


OPTIMIZERS = {
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.02),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "lamb": lambda parameters: Lamb(parameters, lr=0.02),
}


def train(*, optimizer, shared, instances, folder):
    torch.manual_seed(0)
    module, peers = Network(), peers_here()
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    plan = read_optimizer(OPTIMIZERS[optimizer](module.parameters()), names)
    execution = Execution(
        backend="cpu",
        batching=Batching(gradient_accumulation=2, instances=instances),
        instance=peers.world.rank,
        locations=Locations(shared_optimizer=8 if shared else None),
    )
    executor = Executor(module, plan=plan, execution=execution, peers=peers)
    generator = torch.Generator().manual_seed(peers.world.rank)
    for _ in range(3):
        executor(torch.randn(4, 6, generator=generator))
    own, whole = executor.session.optimizer_state(), executor.session.whole_optimizer_state()
    if shared:
        # Training can continue from the gathered state.
        executor.set_optimizer_state(whole)
        with pytest.raises(OptionError, match="share of the parameters"):
            store(executor, folder / "model")
    executor(torch.randn(4, 6, generator=generator))
    executor.fetch_weights()
    held = sum(tensor.nbytes for tensor in own.slots.values())
    state = {f"{slot.name}/{slot.parameter}": tensor for slot, tensor in whole.slots.items()}
    return dict(module.state_dict()), state, held


def train_both_ways(folder):
    return {
        optimizer: [
            train(optimizer=optimizer, shared=shared, instances=2, folder=folder / optimizer)
            for shared in (False, True)
        ]
        for optimizer in OPTIMIZERS
    }


def test_a_sharded_optimizer_state_gives_the_same_weights_and_state(world, tmp_path):
    for found in world(train_both_ways, 2, folder=tmp_path):
        for (expected_weights, expected_state, complete), (weights, state, held) in found.values():
            assert all(torch.equal(weights[name], expected_weights[name]) for name in expected_weights)
            assert state.keys() == expected_state.keys()
            assert all(torch.equal(state[name], expected_state[name]) for name in expected_state)
            assert held <= 0.65 * complete
