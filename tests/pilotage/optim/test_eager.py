from __future__ import annotations

import torch

from pilotage.optim.eager import update_eagerly
from pilotage.optim.sgd import SgdRule


def test_an_eager_optimizer_continues_from_the_state_of_torchs():
    values = {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.0}
    mine, theirs = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
    optimizers = [torch.optim.SGD([p], lr=0.1, momentum=0.9, dampening=0.5) for p in (mine, theirs)]
    for parameter, optimizer in zip((mine, theirs), optimizers, strict=True):
        parameter.grad = torch.tensor([1.0, 2.0, 3.0])
        optimizer.step()
    for _ in range(3):
        with torch.no_grad():
            update_eagerly(SgdRule(momentum=True), [mine], optimizers[0].state, values)
        optimizers[1].step()
    assert torch.equal(mine, theirs)


def test_parameters_without_gradient_get_no_state():
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    update_eagerly(SgdRule(), [parameter], optimizer.state, {"lr": 0.1, "weight_decay": 0.0})
    assert torch.equal(parameter.detach(), torch.ones(3))
    assert not optimizer.state
