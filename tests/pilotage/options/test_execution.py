from __future__ import annotations

import pytest

from pilotage.errors import OptionError
from pilotage.options.batching import Batching
from pilotage.options.choices import NonFiniteLoss, OutputMode, Reduction
from pilotage.options.execution import Execution


def test_unset_options_have_defaults():
    execution = Execution()
    assert execution.batching == Batching()
    assert execution.outputs is None
    assert execution.reduction is Reduction.MEAN
    assert execution.nonfinite_loss is NonFiniteLoss.WARN
    assert (execution.seed, execution.backend, execution.tier) == (None, None, None)
    assert not execution.broadcast_buffers


@pytest.mark.parametrize("period", [0, -3])
def test_a_period_is_at_least_one(period):
    with pytest.raises(OptionError, match=f"output_period is {period}. It must be at least 1"):
        Execution(output_period=period)


def test_a_period_that_no_call_reaches_is_refused():
    batching = Batching(device_iterations=4)
    with pytest.raises(OptionError, match=r"output_period is 5.*4 device iterations.*from 1 to 4"):
        Execution(batching=batching, outputs=OutputMode.EVERY_N, output_period=5)
    Execution(batching=batching, outputs=OutputMode.EVERY_N, output_period=4)
    Execution(batching=batching, outputs=OutputMode.ALL, output_period=5)
