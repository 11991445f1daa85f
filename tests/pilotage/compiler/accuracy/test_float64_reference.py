"""Graphs in float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.compiler.accuracy.float64_reference import float64_reference, recording_dtypes, widened

LIBRARY = torch.library.Library("exact_test", "DEF")
LIBRARY.define("single(Tensor x) -> Tensor")
LIBRARY.define("single_in_place(Tensor(a!) x) -> ()")


def _single(x: Tensor) -> Tensor:
    if x.dtype != torch.float32:
        raise RuntimeError("single precision only")
    return x * 3


def _single_in_place(x: Tensor) -> None:
    x.copy_(_single(x))


LIBRARY.impl("single", _single, "CompositeExplicitAutograd")
LIBRARY.impl("single_in_place", _single_in_place, "CompositeExplicitAutograd")


def both(
    function: Callable[..., list[Tensor]], *arguments: Tensor
) -> tuple[list[Tensor], list[Tensor], dict[str, str]]:
    """The results of a graph, those in float64 with the same draws, and the operations without float64."""
    graph = make_fx(function)(*[each.clone() for each in arguments])
    dtypes, problems = {}, {}
    torch.manual_seed(0)
    plain = recording_dtypes(graph, dtypes)(*[each.clone() for each in arguments])
    torch.manual_seed(0)
    exact = float64_reference(graph, dtypes, problems)(*[widened(each.clone()) for each in arguments])
    return plain, exact, problems


def test_sums_have_the_digits_that_float32_loses():
    x = torch.rand(1000) + 1000
    plain, exact, problems = both(lambda x: [x.cumsum(0)[-1], x.double().sum()], x)
    assert exact[0] == pytest.approx(float(x.double().sum()), rel=1e-14)
    assert abs(float(plain[0]) - float(exact[0])) > 1e-4
    assert exact[0].dtype == torch.float64
    assert not problems


def test_casts_of_the_graph_are_skipped():
    x = torch.rand(50)
    _, (exact, made), _ = both(lambda x: [(x.bfloat16() * 3).float(), torch.full((2,), 0.1, dtype=torch.float16)], x)
    assert torch.equal(exact, x.double() * 3)
    assert torch.equal(made, torch.full((2,), 0.1, dtype=torch.float64))


def test_random_draws_are_those_of_the_graph():
    x = torch.rand(64, 8)

    def draw(x):
        noise = torch.rand_like(x) + torch.randn(8)
        return [torch.nn.functional.dropout(x, 0.5), noise, torch.bernoulli(x), torch.empty_like(x).uniform_() + x]

    plain, exact, problems = both(draw, x)
    for one, other in zip(plain, exact, strict=True):
        assert torch.allclose(one.double(), other, rtol=1e-6, atol=1e-6)
    assert not problems


def test_operations_without_float64_run_as_in_the_graph_and_are_named():
    x = torch.rand(10)

    def function(x):
        x = x / 3
        y = torch.ops.exact_test.single(x)
        torch.ops.exact_test.single_in_place(x)
        return [x, y]

    plain, exact, problems = both(function, x)
    for one, other in zip(plain, exact, strict=True):
        assert other.dtype == torch.float64
        assert torch.allclose(one.double(), other, rtol=1e-6)
    assert problems == {
        "exact_test.single.default": "single precision only",
        "exact_test.single_in_place.default": "single precision only",
    }


def test_integers_and_bits_are_unchanged():
    x, places = torch.rand(6), torch.tensor([2, 0])
    plain, exact, problems = both(lambda x, i: [x[i], i + 1, x.argmax(), x.view(torch.int32)], x, places)
    assert torch.equal(exact[0], x[places].double())
    for one, other in zip(plain[1:], exact[1:], strict=True):
        assert torch.equal(one, other)
        assert one.dtype == other.dtype
    assert not problems


def test_in_place_writes_are_visible_to_later_reads():
    def function(x):
        x[1:].mul_(2)
        return [x + 0]

    x = torch.rand(5)
    plain, exact, _ = both(function, x)
    assert torch.allclose(plain[0].double(), exact[0])
