"""One training step through the engine, compared with eager PyTorch."""

from __future__ import annotations

import copy

import torch
from torch import nn

from pilotage.door import WithLoss
from pilotage.optim.reading import read_optimizer
from pilotage.runtime.executor import Executor

__all__ = ["largest_difference"]


def largest_difference() -> float:
    """Train a tiny network for one step with the engine and with eager PyTorch; returns the largest difference."""
    network = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    eager = copy.deepcopy(network)
    inputs, target = torch.linspace(-1, 1, 20).reshape(5, 4), torch.linspace(0, 1, 10).reshape(5, 2)
    _engine_step(network, inputs, target)
    _eager_step(eager, inputs, target)
    pairs = zip(network.parameters(), eager.parameters(), strict=True)
    return max(float((ours - theirs).detach().abs().max()) for ours, theirs in pairs)


def _engine_step(network: nn.Module, inputs: torch.Tensor, target: torch.Tensor) -> None:
    module = WithLoss(network, nn.MSELoss())
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    executor = Executor(module, plan=read_optimizer(_optimizer(network), names))
    executor(inputs, target)
    executor.destroy()


def _eager_step(network: nn.Module, inputs: torch.Tensor, target: torch.Tensor) -> None:
    optimizer = _optimizer(network)
    nn.MSELoss()(network(inputs), target).backward()
    optimizer.step()


def _optimizer(network: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
