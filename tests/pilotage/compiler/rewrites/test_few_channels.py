"""Folded convolutions with few channels: the same results and gradients for all sizes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.compiler.rewrites import few_channels
from pilotage.compiler.rewrites.few_channels import fold_few_channels

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
    tensors = torch.randn(2, channels, *size), torch.randn(count, channels, *kernel)
    return [*(each.contiguous(memory_format=torch.channels_last) for each in tensors), torch.randn(count)]


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
    # A tensor with one channel or one pixel is contiguous in both formats, and is not rewritten.
    if channels > 1 and min(step(*arguments)[0].shape[2:]) > 1:
        assert strides(graph) == [[1, 1]]
    for found, expected in zip(graph(*arguments), step(*arguments), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


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
def test_other_convolutions_are_not_rewritten(stride, channels, options):
    pictures, weight, bias = tensors(channels, (9, 9), (3, 3), count=6)
    arguments = [pictures, weight[:, : channels // options.get("groups", 1)].contiguous(), bias]
    assert strides(folded(training(stride, [1, 1], **options), arguments)) == [stride]


def test_contiguous_images_are_not_rewritten():
    arguments = [each.contiguous() for each in tensors(3, (9, 9), (3, 3))]
    assert strides(folded(training([2, 2], [1, 1]), arguments)) == [[2, 2]]


def test_inference_is_not_rewritten_because_of_infinities():
    def forward(pictures, weight, bias):
        return [aten.convolution(pictures, weight, bias, [2, 2], [1, 1], [1, 1], False, [0, 0], 1)]

    assert strides(folded(forward, tensors(3, (9, 9), (3, 3)))) == [[2, 2]]


def test_slower_rewrites_are_not_used():
    arguments = tensors(3, (9, 9), (3, 3))
    assert strides(folded(training([2, 2], [1, 1]), arguments, worth=lambda *_: False)) == [[2, 2]]


@pytest.mark.parametrize(
    ("seconds", "stride"), [({"plain": 2.0, "folded": 1.0}, [1, 1]), ({"plain": 1.0, "folded": 1.0}, [2, 2])]
)
def test_real_tensors_are_timed_while_the_compiler_uses_fake_ones(monkeypatch, seconds, stride):
    arguments = tensors(3, (9, 9), (3, 3))
    graph = make_fx(training([2, 2], [1, 1]), tracing_mode="fake")(*arguments)

    def measured(ways, device):
        for run in ways.values():
            _, gradient, _ = run()
            assert not isinstance(gradient, FakeTensor)
            assert gradient.isfinite().all()
        return seconds

    monkeypatch.setattr(few_channels, "best_seconds", measured)
    with next(node.meta["val"].fake_mode for node in graph.graph.nodes if node.op == "placeholder"):
        fold_few_channels(graph, CPU)
    graph.recompile()
    assert strides(graph) == [stride]
