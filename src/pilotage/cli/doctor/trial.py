"""One training step through the engine, compared with eager PyTorch: it fails here or it will run elsewhere too."""

from __future__ import annotations

import copy

import torch
from torch import nn

from pilotage.door import WithLoss
from pilotage.optim.reading import read_optimizer
from pilotage.runtime.executor import Executor

__all__ = ["largest_difference"]


def largest_difference() -> float:
    """Train a tiny network for one step by the engine and by hand, and return how far their weights are apart."""
    network = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    by_hand = copy.deepcopy(network)
    inputs, target = torch.linspace(-1, 1, 20).reshape(5, 4), torch.linspace(0, 1, 10).reshape(5, 2)
    _step_by_engine(network, inputs, target)
    _step_by_hand(by_hand, inputs, target)
    pairs = zip(network.parameters(), by_hand.parameters(), strict=True)
    return max(float((ours - theirs).detach().abs().max()) for ours, theirs in pairs)


def _step_by_engine(network: nn.Module, inputs: torch.Tensor, target: torch.Tensor) -> None:
    whole = WithLoss(network, nn.MSELoss())
    names = {id(parameter): name for name, parameter in whole.named_parameters()}
    executor = Executor(whole, plan=read_optimizer(_optimizer(network), names))
    executor(inputs, target)
    executor.destroy()


def _step_by_hand(network: nn.Module, inputs: torch.Tensor, target: torch.Tensor) -> None:
    optimizer = _optimizer(network)
    nn.MSELoss()(network(inputs), target).backward()
    optimizer.step()


def _optimizer(network: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
