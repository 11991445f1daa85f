"""Marking the loss that training starts from."""

from __future__ import annotations

import pytest
import torch

import pilotage
from pilotage.capture.loss.search import Marks, mark_loss
from pilotage.errors import LossError


def test_outside_the_engine_a_mark_does_nothing():
    loss = torch.ones(())
    assert mark_loss(loss) is loss
    assert pilotage.mark_loss is mark_loss


def test_a_mark_records_its_edge_and_keeps_the_value():
    weight = torch.ones(3, requires_grad=True)
    with Marks() as marks:
        loss = mark_loss(weight.sum())
        edge = loss.grad_fn
        loss *= 5
    (noted,) = marks.found
    assert noted.value is loss
    assert noted.edge is not None
    assert noted.edge.node is edge
    assert loss.item() == 15


def test_a_mark_of_a_constant_has_no_edge():
    with Marks() as marks:
        mark_loss(torch.ones(()))
    assert marks.found[0].edge is None


def test_only_a_tensor_can_be_marked():
    with Marks(), pytest.raises(LossError, match="not float"):
        mark_loss(3.0)


def test_marks_end_with_their_block_even_when_it_raises():
    with pytest.raises(ZeroDivisionError), Marks():
        raise ZeroDivisionError
    loss = torch.ones(())
    assert mark_loss(loss) is loss


def test_marks_in_an_inner_search_do_not_affect_the_outer_one():
    with Marks() as outer:
        with Marks() as inner:
            mark_loss(torch.ones(()))
        mark_loss(torch.ones(()))
    assert (len(outer.found), len(inner.found)) == (1, 1)
