"""Masks of ReLU computed from the input of the normalisation."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.compiler.rewrites.affine import gather_affine
from pilotage.compiler.rewrites.relu_masks import mask_from_relu_input

prims, aten = torch.ops.prims, torch.ops.aten


def rectified(picture, mean, inverse, weight, bias):
    return (((picture - mean) * inverse) * weight + bias).to(picture.dtype).relu()


def read_later(picture, *channels):
    result = rectified(picture, *channels)
    mask = aten.le.Scalar(result, 0)
    return result, mask, picture.float() * 2


def read_no_more(picture, *channels):
    doubled = picture.float() * 2
    result = rectified(picture, *channels)
    return result, aten.le.Scalar(result, 0), doubled


def arguments(dtype=torch.bfloat16):
    torch.manual_seed(0)
    numbers = [torch.randn(1, 4, 1, 1), torch.rand(1, 4, 1, 1), torch.randn(4, 1, 1), torch.randn(4, 1, 1)]
    return [torch.randn(2, 4, 16, 16).to(dtype), *numbers]


def rewritten(function, dtype=torch.bfloat16):
    table = {aten._to_copy.default: lambda tensor, *, dtype, **_: prims.convert_element_type(tensor, dtype)}
    graph = make_fx(function, tracing_mode="fake", decomposition_table=table)(*arguments(dtype))
    gather_affine(graph)
    mask_from_relu_input(graph)
    graph.graph.lint()
    graph.recompile()
    (mask,) = [node for node in graph.graph.nodes if node.target is aten.le.Scalar]
    return graph, mask.args[0].target is not aten.relu.default


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_mask_is_recomputed_if_the_input_is_read_anyway(dtype):
    graph, is_rewritten = rewritten(read_later, dtype)
    assert is_rewritten
    result, mask, _ = graph(*arguments(dtype))
    assert torch.equal(mask, result <= 0)
    assert torch.equal(mask, read_later(*arguments(dtype))[1])


def test_values_that_round_to_zero_in_16_bits_are_masked():
    graph, is_rewritten = rewritten(read_later, torch.float16)
    assert is_rewritten
    picture, mean, inverse, weight, bias = arguments(torch.float16)
    tiny = [picture.zero_(), mean.zero_(), inverse, weight, bias.fill_(1e-8)]
    assert read_later(*tiny)[1].all()
    assert graph(*tiny)[1].all()


def test_the_mask_is_kept_if_the_input_is_not_read_again():
    assert not rewritten(read_no_more)[1]
