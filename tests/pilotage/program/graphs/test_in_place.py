import linecache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.program.graphs.in_place import in_place
from pilotage.program.graphs.straight_line import straight_line

F = nn.functional
A, B, ROW = torch.randn(3, 3), torch.randn(3, 3), torch.randn(3)


def overwritten(function, *arguments):
    """The names of the operations of a function that overwrite an argument."""
    graph = make_fx(function)(*arguments)
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function" and in_place(node)]


def gradient_of_relu(a, b):
    return [torch.ops.aten.threshold_backward(a @ b, b, 0)]


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: [F.relu(a @ b)],
        gradient_of_relu,
        lambda a, b: [a @ b + b],
        lambda a, b: [torch.add(a @ b, b, alpha=0.3)],
        lambda a, b: [F.relu(F.layer_norm(a, (3,)) + b)],
    ],
)
def test_fresh_memory_that_nothing_else_needs_is_overwritten_with_the_same_bits(function):
    graph = make_fx(function)(A, B)
    a, b = A.clone(), B.clone()
    assert overwritten(function, A, B)
    assert all(torch.equal(*each) for each in zip(straight_line(graph)(a, b), function(A, B), strict=True))
    assert torch.equal(a, A)
    assert torch.equal(b, B)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda a, b: [F.relu(a)], id="an input"),
        pytest.param(lambda a, b: [product := a @ b, F.relu(product)], id="an output"),
        pytest.param(lambda a, b: [F.relu(product := a @ b), product.exp()], id="used later"),
        pytest.param(lambda a, b: [F.relu((a @ b).t())], id="a view"),
        pytest.param(lambda a, b: [F.relu((a @ b)[0])], id="a row"),
        pytest.param(lambda a, b: [F.relu(a.expand(3, 3))], id="a repeated element"),
        pytest.param(lambda a, b: [ROW * ROW + a], id="a smaller one"),
        pytest.param(lambda a, b: [a @ b + b.double()], id="another type"),
    ],
)
def test_memory_that_is_still_needed_or_has_another_shape_is_kept(function):
    graph = make_fx(function)(A, B)
    a, b = A.clone(), B.clone()
    assert all(torch.equal(*each) for each in zip(straight_line(graph)(a, b), function(A, B), strict=True))
    assert torch.equal(a, A)
    assert torch.equal(b, B)


OPERATIONS = [
    F.relu,
    torch.exp,
    torch.t,
    lambda value: value[:1],
    lambda value: value.reshape(-1, 3),
    lambda value: F.layer_norm(value, (3,)),
    lambda value, other: torch.ops.aten.threshold_backward(value.expand(3, 3), other.expand(3, 3), 0),
    lambda value, other: value.expand(3, 3) @ other.expand(3, 3),
    lambda value, other: value.expand(3, 3) + other.expand(3, 3),
    lambda value, other: value * other.expand(3, 3),
]
BINARY = 6
"""Operations from this position on take two values."""

CHOICES = st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 99), st.integers(0, 99))


@given(st.lists(CHOICES, min_size=2, max_size=12), st.lists(st.integers(0, 99), min_size=1, max_size=3))
def test_any_graph_computes_the_same_bits(steps, returned):
    def function(a, b):
        values = [a, b]
        for operation, one, other in steps:
            chosen = [values[one % len(values)], values[other % len(values)]]
            made = OPERATIONS[operation](*chosen[: 1 + (operation >= BINARY)])
            values.append(made if made.shape == (3, 3) else made.expand(3, 3))
        return [values[each % len(values)].clone() for each in returned]

    graph = make_fx(function)(A, B)
    a, b = A.clone(), B.clone()
    results = straight_line(graph)(a, b)
    assert all(
        torch.equal(
            *each,
        )
        for each in zip(map(torch.nan_to_num, results), map(torch.nan_to_num, graph(A, B)), strict=True)
    )
    assert torch.equal(a, A)
    assert torch.equal(b, B)


def test_the_code_of_a_network_overwrites_activations_and_their_gradients():
    network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 3, 3), nn.ReLU(), nn.Flatten())

    def step(batch, *weights):
        outputs = torch.func.functional_call(network, dict(zip(names, weights, strict=True)), (batch,))
        return list(torch.autograd.grad(outputs.square().mean(), weights))

    names = [name for name, _ in network.named_parameters()]
    weights = [each.detach().requires_grad_() for each in network.parameters()]
    batch = torch.randn(2, 1, 8, 8)
    graph = make_fx(step)(batch, *weights)
    run = straight_line(graph)
    text = "".join(linecache.getlines(run.__code__.co_filename))
    assert text.count("relu__default(") == 2
    assert text.count("grad_input=") == 2
    with torch.no_grad():
        assert all(
            torch.equal(*each) for each in zip(run(batch, *weights), step_in_eager(step, batch, weights), strict=True)
        )


def step_in_eager(step, batch, weights):
    with torch.enable_grad():
        return step(batch, *weights)
