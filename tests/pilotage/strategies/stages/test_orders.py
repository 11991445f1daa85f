from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.errors import OptionError
from pilotage.options.choices import PipelineOrder
from pilotage.strategies.stages.orders import Move, moves, order_for

ORDERS = st.sampled_from(PipelineOrder)


@given(ORDERS, st.integers(1, 9), st.integers(1, 5), st.booleans())
def test_every_micro_batch_goes_through_every_stage_in_turn(order, round_, stages, trains):
    told = list(moves(order, round_, stages, trains=trains))
    when = {move: moment for moment, move in enumerate(told)}
    assert len(when) == len(told) == round_ * stages * (2 if trains else 1)
    for move, moment in when.items():
        if move.stage > 0:
            before = Move(move.stage - 1, move.number)
            assert when[before] < moment if not move.back else when[Move(move.stage - 1, move.number, True)] > moment
        if move.back:
            assert when[Move(move.stage, move.number)] < moment


@given(ORDERS, st.integers(1, 9), st.integers(1, 5), st.booleans())
def test_forward_passes_are_in_the_order_of_one_card(order, round_, stages, trains):
    forwards = [move for move in moves(order, round_, stages, trains=trains) if not move.back]
    assert forwards == [Move(stage, number) for number in range(round_) for stage in range(stages)]


@given(st.integers(1, 9), st.integers(1, 5))
def test_a_stage_in_1f1b_holds_one_micro_batch_for_itself_and_each_later_stage(round_, stages):
    held = [0] * stages
    for move in moves(PipelineOrder.ONE_FORWARD_ONE_BACKWARD, round_, stages, trains=True):
        held[move.stage] += -1 if move.back else 1
        assert held[move.stage] <= stages - move.stage


ONE, GPIPE, SHARDED = PipelineOrder.ONE_FORWARD_ONE_BACKWARD, PipelineOrder.GPIPE, PipelineOrder.SHARDED


@pytest.mark.parametrize("asked", [None, *PipelineOrder])
def test_inference_has_one_order_unless_it_is_sharded(asked):
    assert order_for(asked, 1, 4, trains=False) is (SHARDED if asked is SHARDED else GPIPE)


def test_the_order_that_keeps_the_fewest_micro_batches_is_preferred():
    assert order_for(None, 4, 4, trains=True) is ONE
    assert order_for(None, 3, 4, trains=True) is GPIPE
    for order in PipelineOrder:
        assert order_for(order, 4, 4, trains=True) is order


def test_too_few_micro_batches_for_the_requested_order_are_refused():
    with pytest.raises(OptionError, match="for each of the 4 stages, but there are 3"):
        order_for(ONE, 3, 4, trains=True)
