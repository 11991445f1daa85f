"""Temporary memory inside of convolutions; measured sizes are those of single convolutions on an H200."""

import pytest

from pilotage.prediction.devices import device_model
from pilotage.prediction.memory.workspaces import workspace_of
from pilotage.prediction.trace.work import Convolution, Work, WorkKind

CARD, IPU = device_model("h200"), device_model("bow")


def convolution(way="forward", **changes):
    facts = {"pixels": 100_352, "channels_in": 64, "channels_out": 64, "taps": 9, "groups": 1, "way": way}
    facts |= {"moved": 51_380_224, "weight_bytes": 147_456} | changes
    return Work(kind=WorkKind.CONVOLUTION, parts=(Convolution(**facts),))


@pytest.mark.parametrize(("way", "measured"), [("forward", 51_530_000), ("weight", 53_590_000)])
def test_operands_and_partial_sums_need_what_was_measured(way, measured):
    assert workspace_of(convolution(way), CARD) == pytest.approx(measured, rel=0.01)


def test_the_layout_of_the_kernels_needs_no_copies():
    assert workspace_of(convolution(channels_last=True), CARD) == 0
    assert workspace_of(convolution(is_plain=True), CARD) == 0
    assert workspace_of(convolution(is_plain=True, aligned=False), CARD) > 51_000_000


def test_only_cards_have_workspaces_of_convolutions():
    assert workspace_of(convolution(), IPU) == 0
