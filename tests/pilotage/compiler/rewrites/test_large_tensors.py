"""Large tensors get their own kernels, with the same results."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.compiler.rewrites import large_tensors
from pilotage.compiler.rewrites.large_tensors import separate_large_tensors


def lists(numbers):
    return numbers[:3], numbers[3:6], numbers[6:9]


def moments(*tensors):
    parameters, gradients, squares = lists(tensors)
    factor = tensors[9]
    kept = torch._foreach_add(torch._foreach_mul(squares, 0.9), gradients, alpha=0.1)
    kept = torch._foreach_addcmul(kept, gradients, gradients, 0.01)
    roots = torch._foreach_add(torch._foreach_div(torch._foreach_sqrt(kept), factor), 1e-8)
    return [*torch._foreach_addcdiv(torch._foreach_mul(parameters, factor), gradients, roots, -0.5), *kept]


def halves(*tensors):
    parameters, gradients, squares = lists(tensors)
    wide = [gradient.float() for gradient in gradients]
    return list(torch._foreach_addcmul([each.bfloat16() for each in parameters], wide, squares, 0.5))


def arguments():
    torch.manual_seed(0)
    return [torch.rand(shape) for _ in range(3) for shape in ((8, 8), (3,), (70,))] + [torch.tensor(0.5).double()]


@pytest.mark.parametrize("function", [moments, halves])
@pytest.mark.parametrize("large", [1, 32, 1000])
def test_results_are_those_of_the_operations_on_lists(function, large, monkeypatch):
    monkeypatch.setattr(large_tensors, "LARGE", large)
    graph = make_fx(function, tracing_mode="fake")(*arguments())
    separate_large_tensors(graph)
    graph.graph.lint()
    graph.recompile()
    for found, expected in zip(graph(*arguments()), function(*arguments()), strict=True):
        torch.testing.assert_close(found, expected)


def test_only_small_tensors_stay_in_lists(monkeypatch):
    monkeypatch.setattr(large_tensors, "LARGE", 32)
    graph = make_fx(moments, tracing_mode="fake")(*arguments())
    separate_large_tensors(graph)
    sizes = {
        value.numel() for node in graph.graph.nodes if "_foreach" in str(node.target) for value in node.meta["val"]
    }
    assert sizes == {3}


def test_operations_with_kernels_only_for_lists_are_not_split(monkeypatch):
    monkeypatch.setattr(large_tensors, "LARGE", 1)

    def mixed(*tensors):
        return list(torch._foreach_lerp(*map(list, lists(tensors))))

    graph = make_fx(mixed, tracing_mode="fake")(*arguments()[:9])
    before = [node.target for node in graph.graph.nodes]
    separate_large_tensors(graph)
    assert [node.target for node in graph.graph.nodes] == before


def scaled(*tensors):
    factor = tensors[-1].neg().float()
    return list(torch._foreach_add(list(tensors[:3]), torch._foreach_mul(list(tensors[3:6]), factor)))


def test_a_single_number_leaves_the_list_of_larger_tensors():
    """Inductor 2.11 to 2.13 computes a shared factor in the kernel that others of the list read it in."""
    given = [torch.rand(shape) for _ in range(2) for shape in ((4,), (1,), (5,))] + [torch.tensor(0.5).double()]
    graph = make_fx(scaled, tracing_mode="fake")(*given)
    separate_large_tensors(graph)
    sizes = [
        [value.numel() for value in node.meta["val"]] for node in graph.graph.nodes if "_foreach" in str(node.target)
    ]
    assert sizes == [[4, 5], [4, 5]]
    torch.testing.assert_close(graph(*given), scaled(*given))


def test_lists_of_single_numbers_stay():
    given = [torch.rand(1) for _ in range(6)] + [torch.tensor(0.5).double()]
    graph = make_fx(scaled, tracing_mode="fake")(*given)
    separate_large_tensors(graph)
    assert sum("_foreach" in str(node.target) for node in graph.graph.nodes) == 2
