"""Instances that are pipelines over their own cards reach the weights of one process on one card."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.distributed.peers import peers_here

pytestmark = pytest.mark.slow


class Staged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x, target):
        pilotage.enter_stage(0)
        hidden = functional.dropout(self.first(x).tanh(), 0.2)
        pilotage.enter_stage(1)
        output = self.last(hidden)
        return output, functional.cross_entropy(output, target)


def train(*, instances: int, replicas: int, cards: int, caches=None):
    peers = peers_here()
    instance = 0 if peers is None else peers.world.rank
    # The weights differ at first, and the second instance takes those of the first.
    torch.manual_seed(1 + instance)
    module = Staged()
    step = pilotage.training(
        module,
        torch.optim.Adam(module.parameters(), lr=0.02),
        distributed=True,
        backend="cpu",
        cards=["cpu"] * cards,
        tier="graph" if caches is None else "compiled",
        cache_directory=None if caches is None else caches[instance],
        replicas=replicas,
        gradient_accumulation=2,
        seed=7,
    )
    generator = torch.Generator().manual_seed(5)
    for _ in range(3):
        images = torch.randn(2, instances, 2 // instances, 3, 6, generator=generator)
        targets = torch.randint(4, (2, instances, 2 // instances, 3), generator=generator)
        step(images[:, instance].flatten(0, 2), targets[:, instance].flatten())
    assert step.record.latest_tier == ("graph" if caches is None else "compiled")
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def test_two_instances_with_two_stages_each_reach_the_weights_of_one_process_on_one_card(world):
    expected = train(instances=1, replicas=2, cards=1)
    for weights in world(train, 2, instances=2, replicas=1, cards=2):
        torch.testing.assert_close(weights, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_two_instances_run_the_same_compiled_code_in_their_stages(instances, tmp_path):
    """Each compiles in a cache of its own; the second one takes the code of the first."""
    begun = instances()
    caches = [str(tmp_path / "first"), str(tmp_path / "second")]
    begun.start(train, 2, instances=2, replicas=1, cards=2, caches=caches)
    begun.statuses(1500)
    first, second = begun.answers()
    torch.testing.assert_close(first, train(instances=1, replicas=2, cards=1), rtol=1e-5, atol=1e-6)
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
