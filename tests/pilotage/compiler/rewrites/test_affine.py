"""Chains of per-channel arithmetic become factors and a term, with the same results."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.compiler.lowerings import TO_MEMORY
from pilotage.compiler.rewrites.affine import gather_affine

prims, aten = torch.ops.prims, torch.ops.aten
SHAPE = (2, 4, 6, 6)


def normalised(picture, gradient, mean, inverse, weight, bias):
    return (((picture - mean) * inverse) * weight + bias).bfloat16()


def normalised_gradient(picture, gradient, mean, inverse, weight, bias):
    wide = gradient.float()
    return ((wide - (picture.float() - mean) * inverse) - bias) * weight


def arguments(dtype=torch.bfloat16, small=(1, 4, 1, 1)):
    torch.manual_seed(0)
    pictures = [torch.randn(SHAPE).to(dtype) for _ in range(2)]
    return [
        *pictures,
        torch.randn(small),
        torch.rand(small),
        torch.randn(4, 1, 1),
        torch.randn(4, 1, 1).bfloat16().float(),
    ]


def gathered(function, given):
    def decomposed(*tensors):
        return function(*tensors)

    graph = make_fx(decomposed, tracing_mode="fake", decomposition_table={aten._to_copy.default: _converted})(*given)
    gather_affine(graph)
    graph.graph.lint()
    graph.recompile()
    return graph


def _converted(tensor, *, dtype, **_):
    return prims.convert_element_type(tensor, dtype)


def on_pictures(graph):
    """Operations between an image and a per-channel value."""
    return [
        node.target
        for node in graph.graph.nodes
        if node.target in (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor) and node.meta["val"].shape == SHAPE
    ]


@pytest.mark.parametrize(("function", "operations"), [(normalised, 2), (normalised_gradient, 4)])
def test_a_chain_becomes_factors_and_a_term(function, operations):
    graph = gathered(function, arguments())
    assert len(on_pictures(graph)) == operations
    torch.testing.assert_close(graph(*arguments()), function(*arguments()), rtol=2e-2, atol=1e-5)
    written = [node for node in graph.graph.nodes if node.meta.get(TO_MEMORY)]
    assert written
    assert all(node.meta["val"].numel() == 4 for node in written)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(arguments(torch.float32), id="32-bit images"),
        pytest.param(arguments(small=(2, 1, 6, 1)), id="a number for each row"),
    ],
)
def test_other_chains_are_not_rewritten(given):
    before = make_fx(normalised, tracing_mode="fake")(*given)
    assert on_pictures(gathered(normalised, given)) == on_pictures(before)


def test_a_single_addition_is_not_rewritten():
    def scaled(picture, gradient, mean, inverse, weight, bias):
        return picture.float() * weight + bias

    graph = gathered(scaled, arguments())
    assert not any(node.meta.get(TO_MEMORY) for node in graph.graph.nodes)
    torch.testing.assert_close(graph(*arguments()), scaled(*arguments()))
