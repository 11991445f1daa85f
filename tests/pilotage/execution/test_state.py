from __future__ import annotations

import torch
from torch import nn

from pilotage.execution.state import DeviceState
from pilotage.optim.following import FollowedOptimizer
from pilotage.program.layout import Section, StateLayout

CPU = torch.device("cpu")


def state_of(module, replicas=1, pools=False, **settings):
    plan = FollowedOptimizer(
        torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, **settings), module
    ).first_plan()
    return DeviceState(StateLayout.of(module, plan), plan, CPU, replicas, pools), plan


def test_weights_are_copied_and_not_shared(assert_equal):
    module = nn.BatchNorm1d(3)
    state, _ = state_of(module)
    state.load_weights(dict(module.named_parameters()), dict(module.named_buffers()))
    assert_equal(state.parameters["weight"], torch.ones(3))
    state.parameters["weight"].zero_()
    state.buffers()["running_mean"].fill_(5)
    assert_equal(module.weight.detach(), torch.ones(3))
    assert_equal(module.running_mean, torch.zeros(3))
    assert not state.parameters["weight"].requires_grad


def test_replicas_share_weights_and_have_their_own_buffers():
    module = nn.BatchNorm1d(3)
    state, _ = state_of(module, replicas=2)
    state.load_weights(dict(module.named_parameters()), dict(module.named_buffers()))
    sections = (Section.PARAMETERS, Section.BUFFERS)
    first, second = state.arguments(sections, 0), state.arguments(sections, 1)
    assert [a is b for a, b in zip(first, second, strict=True)] == [True, True, False, False, False]
    assert state.arguments(sections, 0) is first


def test_the_optimizer_state_starts_at_zero(assert_equal):
    state, _ = state_of(nn.Linear(3, 2))
    assert state.counter.item() == 0
    assert all(not slot.any() for slot in state.slots.values())


def test_values_are_exact_and_can_be_reloaded():
    module = nn.Linear(3, 2)
    state, plan = state_of(module)
    values = dict(zip(state.layout.values, state.arguments((Section.VALUES,), 0), strict=True))
    assert {value.name: tensor.item() for value, tensor in values.items()} == {"lr": 0.1, "momentum": 0.9}
    module_plan = FollowedOptimizer(torch.optim.SGD(module.parameters(), lr=0.3, momentum=0.9), module).first_plan()
    state.load_values(module_plan)
    assert {value.name: tensor.item() for value, tensor in values.items()} == {"lr": 0.3, "momentum": 0.9}
    assert plan.groups[0].values["lr"] == 0.1


def test_pooled_gradients_are_pieces_of_one_buffer_that_do_not_overlap():
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gaps = nn.Parameter(torch.randn(4, 6)[:, ::2])
            self.last = nn.Parameter(torch.randn(2, 3, 2, 2).to(memory_format=torch.channels_last))
            self.scalar = nn.Parameter(torch.randn(()))

    state, _ = state_of(Odd(), pools=True)
    pieces = state.arguments((Section.GRADIENTS,), 0)
    for number, piece in enumerate(pieces, 1):
        piece += number
    assert state.flat_gradients.numel() == sum(piece.numel() for piece in pieces)
    assert sorted(state.flat_gradients.tolist()) == [1.0] * 12 + [2.0] * 24 + [3.0]
    state.forget_gradients()
    assert not any(piece.any() for piece in pieces)
