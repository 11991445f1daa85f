"""Graphs with rounding noise."""

from __future__ import annotations

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.compiler.accuracy.rounding_noise import rounded_differently


def traced(function, *arguments):
    return make_fx(function)(*arguments)


def test_results_change_only_in_their_last_digits():
    x = torch.rand(1000) + 0.5
    graph = traced(lambda x: [x * 3], x)
    (found,) = rounded_differently(graph, 1, tf32=False)(x)
    assert not torch.equal(found, x * 3)
    assert torch.allclose(found, x * 3, rtol=2 * torch.finfo(torch.float32).eps, atol=0)
    (coarse,) = rounded_differently(graph, 1, tf32=True)(x)
    assert 1e-4 < float((coarse / (x * 3) - 1).abs().max()) < 2**-10
    assert torch.equal(coarse, rounded_differently(graph, 1, tf32=True)(x)[0])


def test_loud_noise_changes_more_digits():
    x = torch.rand(1000) + 0.5
    graph = traced(lambda x: [x * 3], x)
    (plain,), (loud,) = (rounded_differently(graph, 1, tf32=False, amplitude=each)(x) for each in (1, 20))
    distances = [float((found / (x * 3) - 1).abs().max()) for found in (plain, loud)]
    assert 8 * distances[0] < distances[1] < 20 * torch.finfo(torch.float32).eps


def test_integers_views_and_in_place_results_are_unchanged():
    def function(state, x):
        state.add_(1)
        return [x.view(-1), x.argmax(), state.view(2, 2)]

    state, x = torch.zeros(4), torch.rand(2, 3)
    graph = traced(function, state.clone(), x)
    seen, largest, square = rounded_differently(graph, 1, tf32=True)(state, x)
    assert torch.equal(seen, x.view(-1))
    assert largest == x.argmax()
    assert torch.equal(state, torch.ones(4))
    assert square.data_ptr() == state.data_ptr()


def test_random_numbers_are_the_same_ones():
    x = torch.rand(100)
    graph = traced(lambda x: [torch.empty_like(x).bernoulli_(0.5)], x)
    torch.manual_seed(3)
    expected = torch.empty(100).bernoulli_(0.5)
    torch.manual_seed(3)
    assert torch.equal(rounded_differently(graph, 1, tf32=False)(x)[0], expected)
