"""One pass of a convolution on a card; measured times are those of single convolutions on an H200."""

import pytest

from pilotage.prediction.devices import device_model
from pilotage.prediction.timing.card import card_cost
from pilotage.prediction.timing.cost import Arithmetic
from pilotage.prediction.trace.work import Convolution, Work, WorkKind

CARD = device_model("h200")


def convolution(kind="float32", batch=32, into=64, out=64, size=56, kernel=3, **changes):
    width = 2 if kind == "bfloat16" else 4
    pixels = batch * size * size
    facts = {"pixels": pixels, "channels_in": into, "channels_out": out, "taps": kernel**2, "groups": 1}
    facts |= {"way": "forward", "moved": width * pixels * (into + out), "images": ((pixels, into), (pixels, out))}
    part = Convolution(**(facts | changes))
    return Work(kind=WorkKind.CONVOLUTION, type=kind, flops=part.flops, read=part.moved, written=0, parts=(part,))


def seconds(work):
    return card_cost(work, CARD, Arithmetic()).seconds


@pytest.mark.parametrize(
    ("facts", "microseconds"),
    [
        ({"batch": 6, "into": 8, "out": 8, "size": 640, "channels_last": True}, 209.6),
        ({"batch": 6, "into": 8, "out": 8, "size": 640}, 493.4),
        ({"batch": 6, "into": 8, "out": 8, "size": 640, "kind": "bfloat16", "channels_last": True}, 248.8),
        ({"batch": 6, "into": 8, "out": 8, "size": 640, "kind": "bfloat16"}, 467.1),
        ({"channels_last": True}, 47.1),
        ({"kind": "bfloat16", "channels_last": True}, 24.8),
        ({"into": 256, "out": 256, "size": 14, "channels_last": True}, 29.4),
        ({"into": 256, "out": 256, "size": 14, "kind": "bfloat16", "channels_last": True}, 19.5),
    ],
)
def test_forward_passes_take_about_what_was_measured(facts, microseconds):
    assert seconds(convolution(**facts)) == pytest.approx(microseconds * 1e-6, rel=0.25)


def test_convolutions_in_the_layout_of_the_kernels_need_no_reordering():
    assert seconds(convolution(channels_last=True)) < seconds(convolution())


def test_one_channel_has_the_same_order_in_both_layouts():
    facts = {"into": 1, "out": 1}
    assert seconds(convolution(**facts)) == seconds(convolution(**facts, channels_last=True))


def test_few_channels_leave_a_multiplication_empty():
    rate = [convolution(out=n).flops / seconds(convolution(out=n)) for n in (8, 64)]
    assert rate[0] < rate[1] / 4


def test_a_misaligned_number_of_channels_is_slow():
    assert seconds(convolution(out=3, channels_last=True)) > 2 * seconds(convolution(out=8, channels_last=True))


def test_backward_to_the_weights_is_slower_than_forward():
    assert seconds(convolution(way="weight")) > 1.5 * seconds(convolution())


def test_a_product_of_single_pixels_is_reordered_only_if_its_rows_begin_anywhere():
    facts = {"into": 512, "out": 512, "size": 7, "kernel": 1, "is_plain": True}
    assert seconds(convolution(**facts)) < seconds(convolution(**facts, aligned=False))


def test_single_channels_are_fast_in_the_layout_of_the_kernels_only():
    facts = {"groups": 64, "channels_in": 1, "channels_out": 1}
    assert seconds(convolution(**facts, channels_last=True)) < seconds(convolution(**facts)) / 2
