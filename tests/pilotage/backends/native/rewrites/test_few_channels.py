"""Convolutions of few channels, folded: the same results and gradients, whatever their sizes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.backends.native.rewrites.few_channels import fold_few_channels

aten = torch.ops.aten
CPU = torch.device("cpu")


def training(stride, padding, *, for_pictures=False, groups=1, dilation=1):
    def step(pictures, weight, bias):
        shared = (stride, padding, [dilation, dilation], False, [0, 0], groups)
        result = aten.convolution(pictures, weight, bias, *shared)
        wanted = [for_pictures, True, True]
        gradients = aten.convolution_backward(result.cos(), pictures, weight, [weight.shape[0]], *shared, wanted)
        return [result, *[each for each in gradients if each is not None]]

    return step


def folded(step, arguments, worth=lambda *_: True):
    graph = make_fx(step, tracing_mode="fake")(*arguments)
    fold_few_channels(graph, CPU, worth)
    graph.graph.lint()
    graph.recompile()
    return graph


def strides(graph):
    return [node.args[3] for node in graph.graph.nodes if node.target is aten.convolution.default]


def tensors(channels, size, kernel, count=5):
    torch.manual_seed(0)
    pictures = torch.randn(2, channels, *size, dtype=torch.float64).contiguous(memory_format=torch.channels_last)
    return [
        pictures,
        torch.randn(count, channels, *kernel, dtype=torch.float64),
        torch.randn(count, dtype=torch.float64),
    ]


PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))


@settings(deadline=None, max_examples=25)
@given(
    channels=st.integers(1, 4),
    size=st.tuples(st.integers(5, 12), st.integers(5, 12)),
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    stride=PAIR,
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_results_and_gradients_stay_the_same(channels, size, kernel, stride, padding):
    assume(max(stride) > 1 and all(width >= step for width, step in zip(kernel, stride, strict=True)))
    arguments = tensors(channels, size, kernel)
    step = training(list(stride), list(padding))
    graph = folded(step, arguments)
    assert strides(graph) == [[1, 1]]
    for found, expected in zip(graph(*arguments), step(*arguments), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("stride", "channels", "options"),
    [
        ([1, 1], 3, {}),
        ([2, 2], 8, {}),
        ([2, 2], 3, {"for_pictures": True}),
        ([2, 2], 3, {"groups": 3}),
        ([2, 2], 3, {"dilation": 2}),
    ],
)
def test_convolutions_of_another_kind_stay(stride, channels, options):
    pictures, weight, bias = tensors(channels, (9, 9), (3, 3), count=6)
    arguments = [pictures, weight[:, : channels // options.get("groups", 1)].contiguous(), bias]
    assert strides(folded(training(stride, [1, 1], **options), arguments)) == [stride]


def test_what_does_not_pay_stays():
    arguments = tensors(3, (9, 9), (3, 3))
    assert strides(folded(training([2, 2], [1, 1]), arguments, worth=lambda *_: False)) == [[2, 2]]


def test_whether_it_pays_is_measured_on_real_tensors():
    arguments = tensors(3, (9, 9), (3, 3))
    graph = make_fx(training([2, 2], [1, 1]), tracing_mode="fake")(*arguments)
    fold_few_channels(graph, CPU)
    graph.recompile()
    assert strides(graph) in ([[1, 1]], [[2, 2]])
