"""A network with weights, buffers and everything that is hard to train, and eager PyTorch to compare with."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.capture.model import modes_of
from pilotage.optim.reading import read_optimizer
from pilotage.options.choices import Tier
from pilotage.options.execution import Execution
from pilotage.program.signature import CallSignature
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten
from pilotage.runtime.compilation import Compilation
from pilotage.runtime.host import StaleParameter, StaleTensor


class Network(nn.Module):
    """Counts how often its forward runs, in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.runs = Counter()

    def forward(self, x):
        self.runs.count += 1
        output = self.norm(self.layer(x))
        return output, functional.mse_loss(output, torch.ones_like(output))


class Counter:
    """With slots, the engine does not treat the count as state of the model."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Pair:
    """The same network twice: trained by a program, and by plain PyTorch."""

    def __init__(self, *, make=lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), **options) -> None:
        torch.manual_seed(0)
        self.module = Network()
        self.plain = copy.deepcopy(self.module)
        self.optimizer = make(self.module.parameters())
        self.plain_optimizer = make(self.plain.parameters())
        self.step = pilotage.training(self.module, self.optimizer, **options)
        self.generator = torch.Generator().manual_seed(1)

    @property
    def executor(self):
        return self.step._executor

    def batch(self, size=4):
        return torch.randn(size, 4, generator=self.generator)

    def train(self, calls=1, size=4):
        """Train both; returns what the program and plain PyTorch returned last."""
        for _ in range(calls):
            batch = self.batch(size)
            mine = self.step(batch)
            theirs = self.train_plain(batch)
        return mine, theirs

    def train_plain(self, batch):
        self.plain_optimizer.zero_grad()
        outputs = self.plain(batch)
        outputs[-1].backward()
        self.plain_optimizer.step()
        return tuple(output.detach() for output in outputs)

    def untouched(self):
        """Whether the host's tensors are stale."""
        tensors = {**self.module._parameters, **self.module._buffers}
        for part in self.module.modules():
            tensors |= {(part, name): t for name, t in {**part._parameters, **part._buffers}.items()}
        return all(type(tensor) in (StaleParameter, StaleTensor) for tensor in tensors.values() if tensor is not None)

    def plain_again(self):
        """Whether the host's tensors are plain again."""
        return all(
            type(tensor) is kind and not vars(tensor)
            for kind, tensors in ((nn.Parameter, self.module.parameters()), (torch.Tensor, self.module.buffers()))
            for tensor in tensors
        )


@pytest.fixture
def pair():
    return Pair


@pytest.fixture
def network():
    return Network


@pytest.fixture
def compilation():
    """Makes a `Compilation` of a small network, the arguments of its `session`, and a list of the events."""

    def make(module, *inputs, trains=True, **settings):
        names = {id(parameter): name for name, parameter in module.named_parameters()}
        plan = read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9), names) if trains else None
        tensors, arguments = flatten(CallSignature.of(module.forward).bind(inputs, {}), {})
        events = []
        given = {name: settings.pop(name) for name in ("peers", "pipeline_group") if name in settings}
        compiled = Compilation(
            module=module,
            modes=modes_of(module),
            plan=plan,
            execution=Execution(backend="cpu", **{"tier": Tier.GRAPH, **settings}),
            replica_groups={},
            parsers={},
            tell=events.append,
            on_failure=lambda failure, error: False,
            sample=lambda: list(tensors),
            **given,
        )
        return compiled, (arguments, [TensorSpec.of(tensor) for tensor in tensors]), events

    return make
