from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

import pilotage


class Partly(nn.Module):
    """A loss that does not depend on all parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(3, 3)
        self.unused = nn.Linear(3, 3)

    def forward(self, x):
        output = self.used(x)
        return output, functional.mse_loss(output, torch.ones_like(output))


def test_parameters_without_a_gradient_are_not_decayed_either(eager, twins, assert_equal, assert_same_state):
    for options in ({}, {"gradient_accumulation": 2}):
        mine, theirs = twins(Partly)
        step = pilotage.training(mine, torch.optim.AdamW(mine.parameters(), lr=0.1, weight_decay=0.5), **options)
        reference = eager(theirs, torch.optim.AdamW(theirs.parameters(), lr=0.1, weight_decay=0.5), **options)
        before = mine.unused.weight.detach().clone()
        for _ in range(2):
            batch = torch.randn(4, 3)
            assert_equal(step(batch), reference(batch))
        assert_same_state(mine, theirs)
        assert_equal(mine.unused.weight.detach(), before)


def test_the_optimizer_state_is_only_on_the_device_until_it_is_read():
    module = Partly()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
    step = pilotage.training(module, optimizer)
    step(torch.randn(4, 3))
    assert dict.__len__(optimizer.state) == 0
    assert all(parameter.grad is None for parameter in module.parameters())
    assert len(optimizer.state) > 0


def test_a_float16_model_pools_its_gradients_in_float32(twins):
    """Sums in half precision lose small values; the pool must not."""

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros((), dtype=torch.float16))

        def forward(self, x):
            return pilotage.mark_loss((self.weight * x).sum())

    module = Scale()
    step = pilotage.training(
        module, torch.optim.SGD(module.parameters(), lr=1.0), gradient_accumulation=4, reduction="sum"
    )
    step(torch.tensor([2048.0, 1.0, 1.0, 1.0], dtype=torch.float16))
    assert module.weight.item() == -2052.0
