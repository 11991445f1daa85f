"""Gradients written directly into their pools."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import nn

from pilotage.capture.capture import Request, capture
from pilotage.capture.model import modes_of
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import WalkedExecutable
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.choices import OutputMode, Pooling, Reduction
from pilotage.passes.direct_gradients import with_direct_gradients
from pilotage.passes.early_exchange import with_early_exchange
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.program import Action
from pilotage.program.schedule import make_schedule
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten

CPU = torch.device("cpu")
INPUT = torch.randn(3, 2, 6, 6, generator=torch.Generator().manual_seed(1))


class Mixed(nn.Module):
    """All kinds of gradients: products, convolutions, sums, two from one product, none."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convolution = nn.Conv2d(2, 4, 3)
        self.norm = nn.GroupNorm(2, 4)
        self.first = nn.Linear(64, 8)
        self.second = nn.Linear(8, 8, bias=False)
        self.left, self.right = nn.Parameter(torch.ones(8, 8)), nn.Parameter(torch.ones(8, 8))
        self.unused = nn.Parameter(torch.ones(5))

    def forward(self, x):
        x = self.norm(self.convolution(x)).relu().flatten(1)
        x = self.second(self.first(x).tanh())
        # Used twice, and two that get the very same gradient.
        x = self.second(x) @ (self.left + self.right)
        return x, nn.functional.mse_loss(x, torch.ones_like(x))


@cache
def program_of(batching: Batching, pooling: Pooling = Pooling.POST, reduction: Reduction = Reduction.MEAN):
    module = Mixed()
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9)
    plan = read_optimizer(optimizer, {id(parameter): name for name, parameter in module.named_parameters()})
    _, arguments = flatten(((INPUT,), {}))
    program = capture(
        Request(
            module=module,
            arguments=arguments,
            inputs=[TensorSpec.of(INPUT)],
            modes=modes_of(module),
            plan=plan,
            batching=batching,
            pooling=pooling,
            reduction=reduction,
        )
    )
    schedule = make_schedule(batching, trains=True, mode=OutputMode.ALL)
    return program, schedule, plan, module


def trained(program, schedule, plan, module):
    state = DeviceState(program.layout, plan, CPU, 1, True, exchange=lambda flat: lambda: flat.mul_(2))
    state.load_weights(dict(module.named_parameters()), {})
    executable = WalkedExecutable(program, schedule, lambda failure, error: False)
    outputs = []
    for number in range(3):
        outputs += executable.run(state, RandomStreams(CPU), [INPUT.repeat(schedule.micro_batches, 1, 1, 1) * number])
    return [*outputs, *state.parameters.values(), *state.slots.values()]


@pytest.mark.parametrize("reduction", Reduction)
@pytest.mark.parametrize("iterations", [1, 2])
def test_weights_are_bitwise_identical(iterations, reduction):
    program, *rest = program_of(Batching(instances=2, device_iterations=iterations), reduction=reduction)
    direct = with_direct_gradients(program, rest[0])
    assert direct is not program
    torch.testing.assert_close(trained(direct, *rest), trained(program, *rest), rtol=0, atol=0)


def test_matrix_products_are_written_into_the_pool_and_nothing_is_zeroed():
    program, schedule, *_ = program_of(Batching(instances=2))
    direct = with_direct_gradients(program, schedule)
    nodes = [str(node.target) for part in direct.computations.values() for node in part.graph.graph.nodes]
    # Only the layer that is used once: not a sum of two products, nor a gradient of two parameters.
    assert nodes.count("aten.addmm.out") == 1
    assert not {"aten._foreach_zero_.default"} & {*nodes}


@pytest.mark.parametrize(
    ("batching", "pooling"),
    [
        (Batching(instances=2, gradient_accumulation=2), Pooling.POST),
        (Batching(replicas=2), Pooling.POST),
        (Batching(instances=2), Pooling.RUNNING),
        (Batching(), Pooling.POST),
    ],
)
def test_pools_with_several_gradients_are_unchanged(batching, pooling):
    program, schedule, *_ = program_of(batching, pooling)
    assert with_direct_gradients(program, schedule) is program


@pytest.mark.parametrize(("part_bytes", "parts"), [(512, 2), (1 << 20, 1)])
def test_parts_are_exchanged_after_they_are_written(part_bytes, parts):
    program, schedule, plan, module = program_of(Batching(instances=2))
    computation = with_direct_gradients(program, schedule).computations[Action.ACCUMULATE]
    state = DeviceState(program.layout, plan, CPU, 1, True)
    state.load_weights(dict(module.named_parameters()), {})
    seen = []
    early = with_early_exchange(
        computation,
        computation.graph,
        program.layout,
        lambda part: seen.append((part, state.flat_gradients.clone())),
        part_bytes,
    )
    straight_line(early)(*state.arguments(computation.sections, 0), INPUT)
    assert len(seen) == parts
    assert all(torch.equal(flat[part], state.flat_gradients[part]) for part, flat in seen)
    assert torch.equal(seen[0][1], state.flat_gradients) == (parts == 1)
    covered = sorted(index for part, _ in seen for index in range(part.start, part.stop))
    assert covered == list(range(state.flat_gradients.numel()))
