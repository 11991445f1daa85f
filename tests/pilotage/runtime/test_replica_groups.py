import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from pilotage.errors import OptionError
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.choices import OutputMode, ReplicaGrouping
from pilotage.options.execution import Execution
from pilotage.runtime.executor import Executor


class Scaled(nn.Module):
    """A shared layer, and a scale that may have several copies."""

    def __init__(self, copies):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.rand(copies, 4) + 0.5)

    def forward(self, inputs):
        outputs = self.layer(inputs) * self.scale
        return outputs, functional.mse_loss(outputs, torch.ones_like(outputs))


def executor_of(module, replicas, accumulation=1, **settings):
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    batching = Batching(replicas=replicas, gradient_accumulation=accumulation)
    execution = Execution(batching=batching, outputs=OutputMode.ALL, **settings)
    return Executor(module, execution=execution, plan=read_optimizer(optimizer, names))


@pytest.mark.parametrize("accumulation", [1, 2])
@pytest.mark.parametrize(
    ("grouping", "copy_of_replica"),
    [(ReplicaGrouping.CONSECUTIVE, [0, 0, 1, 1]), (ReplicaGrouping.ORTHOGONAL, [0, 1, 0, 1])],
)
def test_each_group_trains_its_own_copy(grouping, copy_of_replica, accumulation):
    torch.manual_seed(0)
    module = Scaled(copies=2)
    eager = copy.deepcopy(module)
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.1, momentum=0.9)
    executor = executor_of(module, 4, accumulation)
    executor.group_replicas("scale", 2, grouping)
    for _ in range(3):
        batch = torch.randn(4 * accumulation * 2, 4)
        outputs, _ = executor(batch)
        expected = []
        shared, own = 0.0, 0.0
        for number, part in enumerate(batch.split(2)):
            result = eager.layer(part) * eager.scale[copy_of_replica[number % 4]]
            loss = functional.mse_loss(result, torch.ones_like(result))
            shared, own = shared + loss / (4 * accumulation), own + loss / (2 * accumulation)
            expected.append(result)
        optimizer.zero_grad()
        for parameter in eager.layer.parameters():
            parameter.grad = torch.autograd.grad(shared, parameter, retain_graph=True)[0]
        eager.scale.grad = torch.autograd.grad(own, eager.scale)[0]
        optimizer.step()
        assert torch.allclose(outputs, torch.cat(expected), atol=1e-6)
        for mine, theirs in zip(module.parameters(), eager.parameters(), strict=True):
            assert torch.allclose(mine, theirs, atol=1e-6)


def test_the_leading_dimension_has_to_hold_one_copy_for_each_group():
    with pytest.raises(OptionError, match=r"leading dimension of scale is 3. It must be 2"):
        executor_of(Scaled(copies=3), 4).group_replicas("scale", 2, ReplicaGrouping.CONSECUTIVE)


def test_groups_have_to_divide_the_replicas():
    with pytest.raises(OptionError, match="do not divide 4 replicas"):
        executor_of(Scaled(copies=2), 4).group_replicas("scale", 3, ReplicaGrouping.CONSECUTIVE)


def test_replicas_cannot_be_grouped_after_compilation():
    executor = executor_of(Scaled(copies=1), 1)
    executor(torch.randn(2, 4))
    with pytest.raises(OptionError, match="compiled"):
        executor.group_replicas("scale", 1, ReplicaGrouping.CONSECUTIVE)
