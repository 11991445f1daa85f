"""Gaudi's device by our emulation, against the processor's."""

import pytest

from cosmictagger.configuration.choices import OptimizerKind
from cosmictagger.devices.gaudi import gaudi


@pytest.mark.slow
@pytest.mark.parametrize("kind", OptimizerKind)
def test_losses_are_those_of_the_processor(small, kind):
    device, mark_step = gaudi()
    ours, theirs = small.plain(kind, device=device, boundary=mark_step), small.plain(kind)
    assert small.losses(ours) == pytest.approx(small.losses(theirs), rel=1e-5)
    assert ours.evaluate(small.batch(9)).loss == pytest.approx(theirs.evaluate(small.batch(9)).loss, rel=1e-5)
    assert ours.placement().device == "hpu:0"


def test_a_boundary_follows_each_backward_and_each_update(small):
    marks = []
    device = small.plain(boundary=lambda: marks.append(device._updates))
    device.train([small.batch(0), small.batch(1)], 1e-3)
    assert len(marks) == 3
    device.evaluate(small.batch(0))
    assert len(marks) == 4
