"""Writes of trained values at masked or indexed places."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import pilotage

X = torch.arange(24.0).reshape(2, 3, 4) / 24
MASK = torch.tensor([[True, False, True], [False, True, True]])


class Putting(nn.Module):
    def __init__(self, put, shape) -> None:
        super().__init__()
        self.put = put
        self.value = nn.Parameter(torch.full(shape, 0.5))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        result = self.put(x * 1, mask, self.value)
        return pilotage.mark_loss((result * torch.arange(24.0).reshape(2, 3, 4) / 24).square().mean())


def assigned(x, mask, value):
    x[mask] = value
    return x


def assigned_in_a_tuple(x, mask, value):
    x[(mask,)] = value
    return x


PUT = {
    "a token": (assigned, (4,)),
    "a number": (assigned, ()),
    "a row": (assigned, (1, 4)),
    "in a tuple": (assigned_in_a_tuple, (4,)),
    "index_put": (lambda x, mask, value: torch.index_put(x, (mask,), value), (4,)),
    "index_put, accumulated": (lambda x, mask, value: x.index_put((mask,), value, accumulate=True), (4,)),
    "index_put_": (lambda x, mask, value: x.index_put_((mask,), value), (4,)),
    "index_put_, accumulated": (lambda x, mask, value: x.index_put_((mask,), value, accumulate=True), ()),
    "index_put at numbers": (lambda x, mask, value: x.index_put((torch.tensor([0, 1, 0]),), value), (4,)),
    "index_fill": (lambda x, mask, value: x.index_fill(1, torch.tensor([0, 2, 0]), value), ()),
    "index_fill_": (lambda x, mask, value: x.index_fill_(-1, torch.tensor([3]), value), ()),
}


@pytest.mark.parametrize("name", PUT)
def test_the_value_is_trained_as_in_eager(name, twins, assert_same_state, assert_equal):
    mine, theirs = twins(lambda: Putting(*PUT[name]))
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.01))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.01)
    for mask in (MASK, ~MASK, torch.zeros_like(MASK), torch.ones_like(MASK)):
        loss = step(X, mask)
        optimizer.zero_grad()
        wanted = theirs(X, mask)
        wanted.backward()
        optimizer.step()
        assert_equal(loss, wanted.detach(), 1e-6)
    assert_same_state(mine, theirs, 1e-6)


def test_writing_a_constant_is_unchanged(assert_equal):
    module = nn.Module()
    module.forward = lambda x, mask: assigned(x * 1, mask, torch.tensor(2.0))
    assert_equal(pilotage.inference(module)(X, MASK), assigned(X * 1, MASK, torch.tensor(2.0)))
