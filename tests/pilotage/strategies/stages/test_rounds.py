from __future__ import annotations

import pytest

from pilotage.errors import OptionError
from pilotage.options.choices import PipelineOrder
from pilotage.strategies.stages.rounds import order_for

ONE, GPIPE, SHARDED = PipelineOrder.ONE_FORWARD_ONE_BACKWARD, PipelineOrder.GPIPE, PipelineOrder.SHARDED


@pytest.mark.parametrize("asked", [None, *PipelineOrder])
def test_without_backward_there_is_one_order_unless_micro_batches_go_alone(asked):
    assert order_for(asked, 1, 4, trains=False) is (SHARDED if asked is SHARDED else GPIPE)


def test_the_order_that_keeps_the_fewest_micro_batches_is_taken_where_there_are_enough_of_them():
    assert order_for(None, 4, 4, trains=True) is ONE
    assert order_for(None, 3, 4, trains=True) is GPIPE
    for order in PipelineOrder:
        assert order_for(order, 4, 4, trains=True) is order


def test_too_few_micro_batches_for_the_order_that_is_asked_for_are_refused():
    with pytest.raises(OptionError, match="4 at least, and there are 3"):
        order_for(ONE, 3, 4, trains=True)
