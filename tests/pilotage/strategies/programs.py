"""Small captured programs for tests of strategies; loaded by its path, in other processes too."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.capture.capture import Request, capture
from pilotage.capture.model import modes_of
from pilotage.execution.random_streams import RandomStreams
from pilotage.optim.reading import read_optimizer
from pilotage.options.choices import OutputMode
from pilotage.program.program import Action
from pilotage.program.schedule import make_schedule
from pilotage.program.signature import CallSignature
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten
from pilotage.strategies.strategy import Setup

CPU = torch.device("cpu")
SAMPLES = 3


class TwoStages(nn.Module):
    """Two layers, each a stage, with a buffer that each forward changes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 5), nn.Linear(5, 2)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, target):
        pilotage.enter_stage(0)
        hidden = self.first(x).tanh()
        pilotage.enter_stage(1)
        output = self.last(hidden)
        self.seen += 1
        return output, functional.mse_loss(output, target)


def network():
    """The same network in every process."""
    torch.manual_seed(0)
    return TwoStages()


def batch(batching, calls=0):
    """The inputs of one call."""
    generator = torch.Generator().manual_seed(calls)
    count = batching.micro_batches_per_call * SAMPLES
    return torch.randn(count, 4, generator=generator), torch.randn(count, 2, generator=generator)


def plan_of(module):
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    return read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9), names)


def captured(module, batching, *, trains=True, gradients_apart=False):
    """A program of the module, captured on the processor."""
    inputs = [tensor[:SAMPLES] for tensor in batch(batching)]
    tensors, arguments = flatten(CallSignature.of(module.forward).bind(tuple(inputs), {}), {})
    return capture(
        Request(
            module=module,
            arguments=arguments,
            inputs=[TensorSpec.of(tensor) for tensor in tensors],
            modes=modes_of(module),
            plan=plan_of(module) if trains else None,
            batching=batching,
            broadcast_buffers=False,
            separate_gradients=gradients_apart,
        )
    )


def schedule_of(program, batching):
    pools = Action.UPDATE in program.computations
    return make_schedule(batching, trains=program.trains, mode=OutputMode.ALL, pools=pools)


def setup(batching, **settings):
    streams = RandomStreams(CPU, [1] * batching.replicas)
    return Setup(replicas=batching.replicas, streams=streams, on_failure=lambda failure, error: False, **settings)


def attached(strategy, module):
    """The strategy with the module's weights on its devices."""
    state = strategy.attach(strategy.program.plan)
    state.load_weights(dict(module.named_parameters()), dict(module.named_buffers()))
    return strategy


def trained(strategy, module, batching, calls=3):
    """What the calls return, and the weights and buffers after them."""
    attached(strategy, module)
    outputs = [strategy.run(batch(batching, number)) for number in range(calls)]
    # A single loss has no dimension, several have one.
    outputs = [[each if each.dim() else each.reshape(1) for each in found] for found in outputs]
    return outputs, {name: tensor.detach().clone() for name, tensor in strategy.weights().items()}


def trained_by_eager(module, batching, calls=3):
    """The same in plain PyTorch; one buffer counts all forwards, and replicas count their own."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    per_update = batching.gradient_accumulation * batching.replicas
    outputs = []
    for number in range(calls):
        pieces = zip(*(tensor.split(SAMPLES) for tensor in batch(batching, number)), strict=True)
        found = []
        for position, (x, target) in enumerate(pieces, start=1):
            found.append(module(x, target))
            (found[-1][1] / per_update).backward()
            if position % per_update == 0:
                optimizer.step()
                optimizer.zero_grad()
        joined = [torch.cat([output for output, _ in found]), torch.stack([loss for _, loss in found])]
        outputs.append([each.detach() for each in joined])
    module.seen /= batching.replicas
    return outputs, {name: tensor.detach() for name, tensor in module.state_dict().items()}
