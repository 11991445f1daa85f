"""Batched products of widened tensors."""

from __future__ import annotations

import pytest
import torch
from torch.fx import Interpreter

from pilotage.compiler.rewrites.widened_products import multiply_narrow_numbers
from pilotage.torch_private import make_fx, select_decomp_table

aten = torch.ops.aten


class WithWideProducts(Interpreter):
    """Computes products of narrow numbers on a processor, where torch has no kernel for them."""

    def call_function(self, target, args, kwargs):
        if target is aten.bmm.dtype:
            left, right, dtype = args
            assert left.dtype == right.dtype == torch.bfloat16
            return torch.bmm(left.to(dtype), right.to(dtype))
        return super().call_function(target, args, kwargs)


def rewritten(function, *inputs):
    graph = make_fx(function, decomposition_table=select_decomp_table(), tracing_mode="fake")(*inputs)
    multiply_narrow_numbers(graph)
    graph.graph.lint()
    return graph, WithWideProducts(graph).run(*inputs)


def targets(graph):
    return [node.target for node in graph.graph.nodes]


def heads(batch=2, length=6, count=3, width=4):
    return torch.randn(batch, length, count, width, dtype=torch.bfloat16).transpose(1, 2)


def scores(query, key):
    return (query.float() * 0.7) @ (key.float() * 0.7).transpose(-2, -1)


def test_scores_of_attention_are_multiplied_as_narrow_numbers():
    query, key = heads(), heads()
    graph, found = rewritten(scores, query, key)
    assert targets(graph).count(aten.bmm.dtype) == 1
    assert aten.bmm.default not in targets(graph)
    torch.testing.assert_close(found, scores(query, key))


def test_a_product_with_a_tensor_of_full_width_stays():
    graph, _ = rewritten(lambda weights, value: weights @ value.float(), torch.randn(2, 3, 6, 6), heads())
    assert aten.bmm.dtype not in targets(graph)


def test_a_tensor_that_was_changed_after_it_was_widened_stays():
    graph, _ = rewritten(lambda query, key: scores(query.float().exp(), key), heads(), heads())
    assert aten.bmm.dtype not in targets(graph)


def test_narrow_types_are_not_mixed():
    graph, _ = rewritten(scores, heads(), heads().half())
    assert aten.bmm.dtype not in targets(graph)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device.")
def test_a_card_sums_narrow_products_exactly():
    query, key = heads(width=64).cuda(), heads(width=64).cuda()
    expected = query.double() @ key.double().transpose(-2, -1)
    left, right = query.reshape(-1, 6, 64), key.transpose(-2, -1).reshape(-1, 64, 6)
    found = torch.bmm(left, right, out_dtype=torch.float32).view(2, 3, 6, 6)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
