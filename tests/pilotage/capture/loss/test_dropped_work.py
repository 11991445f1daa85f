"""How values relate to the loss they were computed from."""

from __future__ import annotations

import torch

from pilotage.capture.loss.dropped_work import DroppedWork, Operation, dropped_work
from pilotage.capture.loss.search import Loss


def loss_of(*shape: int) -> Loss:
    weight = torch.ones(shape, requires_grad=True)
    return Loss.of(weight.exp(), "model.py:1")


def found(root, operations=None, **outputs):
    return dropped_work(root, outputs, operations or {})


def test_the_first_output_with_work_in_it_is_named():
    root = loss_of()
    larger = 5 * root.value
    operations = {larger.grad_fn: Operation("model.py:2", 1)}
    work = found(root, operations, scores=torch.ones(3), plain=root.value.view(1), larger=larger.sqrt())
    assert work == DroppedWork(output="larger", loss="model.py:1", operation="model.py:2")


def test_work_without_a_line_gets_that_of_the_next_operation():
    root = loss_of()
    larger = 5 * root.value
    root_of_it = larger.sqrt()
    work = found(root, {root_of_it.grad_fn: Operation("model.py:3", 1)}, output=root_of_it)
    assert work is not None
    assert work.operation == "model.py:3"
    assert found(root, output=larger) == DroppedWork(output="output", loss="model.py:1", operation=None)


def test_outputs_independent_of_the_loss_or_without_gradient_are_not_work():
    root = loss_of(3)
    other = torch.ones(3, requires_grad=True).exp()
    assert found(root, other=other * 3, detached=root.value.detach() * 3, itself=root.value) is None
    assert found(Loss.of(torch.ones(())), other=other * 3) is None


def test_a_sum_over_all_elements_is_the_same_loss_and_a_mean_is_not():
    root = loss_of(3)
    assert found(root, output=root.value.sum()) is None
    assert found(root, output=root.value.mean()) is not None
    assert found(root, output=root.value[:2]) is None
    assert found(root, output=root.value[:2].sum()) is not None


def test_a_constant_that_makes_the_loss_larger_is_work():
    root = loss_of()
    for constant, is_work in ((torch.ones(()), False), (torch.ones(4), True)):
        shifted = root.value + constant
        operations = {shifted.grad_fn: Operation("model.py:2", shifted.numel())}
        assert (found(root, operations, output=shifted.sum()) is not None) == is_work


def test_a_factor_in_a_sum_is_work():
    root, zero = loss_of(), torch.zeros(())
    for value, is_work in (
        (torch.add(zero, root.value), False),
        (torch.add(zero, root.value, alpha=2), True),
        (root.value - zero, False),
        (zero - root.value, True),
        (root.value + root.value, True),
    ):
        operations = {value.grad_fn: Operation("model.py:2", 1)}
        assert (found(root, operations, output=value) is not None) == is_work


def test_long_chains_are_followed():
    root = loss_of()
    value = root.value
    for _ in range(5000):
        value = value.view(())
    assert found(root, output=value) is None
    assert found(root, output=value.exp()) is not None
