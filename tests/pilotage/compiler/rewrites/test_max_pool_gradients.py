"""Compiled gradients of max pooling."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMPILED = """
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from pilotage.compiler.rewrites.for_card import NOT_DECOMPOSED
from pilotage.compiler.rewrites.max_pool_gradients import gather_max_pool_gradients

table = {target: rule for target, rule in select_decomp_table().items() if target not in NOT_DECOMPOSED}
aten = torch.ops.aten

def inner(graph, examples, **choices):
    before = str(graph.graph)
    gather_max_pool_gradients(graph)
    assert sum("max_pool_gradient" in str(node.target) for node in graph.graph.nodes) == len(cases), before
    return compile_fx_inner(graph, examples, **choices)

cases = [
    ([3, 3], [2, 2], [1, 1], False, True, torch.bfloat16),
    ([2, 2], [2, 2], [0, 0], False, False, torch.float32),
    ([3, 2], [1, 2], [1, 0], True, True, torch.float64),
    ([2, 3], [3, 1], [1, 1], True, False, torch.float32),
    ([2, 2], [3, 3], [0, 0], False, True, torch.float32),
    ([2, 2], [2, 3], [0, 1], False, False, torch.float32),
    ([2], [], [0], False, True, torch.float32),
]

# One graph for all: the C++ compiler takes seconds for each.
def pooled(*tensors):
    results = []
    for (kernel, stride, padding, ceil, _, _), picture, gradient in zip(cases, tensors[::2], tensors[1::2]):
        _, indices = aten.max_pool2d_with_indices(picture, kernel, stride, padding, [1, 1], ceil)
        window = (kernel, stride, padding, [1, 1], ceil)
        results.append(aten.max_pool2d_with_indices_backward(gradient, picture, *window, indices))
    return results

tensors = []
for kernel, stride, padding, ceil, last, dtype in cases:
    torch.manual_seed(0)
    layout = torch.channels_last if last else torch.contiguous_format
    picture = torch.randn(2, 3, 11, 8).to(dtype).contiguous(memory_format=layout)
    gradient = torch.randn_like(aten.max_pool2d_with_indices(picture, kernel, stride, padding, [1, 1], ceil)[0])
    tensors += [picture, gradient]
with torch.no_grad():
    graph = make_fx(pooled)(*tensors)
    compiled = compile_fx(graph, tensors, inner_compile=inner, decompositions=table)
    results = compiled(*tensors)
for found, expected in zip(results, pooled(*tensors), strict=True):
    assert found.stride() == expected.stride()
    torch.testing.assert_close(found, expected)
    print("same")
"""


@pytest.mark.long
def test_compiled_gradients_of_pooling_are_those_of_eager():
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["same"] * 7, done.stderr
