"""Calls: binding arguments, splitting them into micro-batches, and comparing them with the first call."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import BatchDimensionError, InputError, MissingArgumentError, UnexpectedArgumentError


@dataclasses.dataclass
class Sample:
    image: Any
    label: Any


class Pair(NamedTuple):
    left: Any
    right: Any


class Seeing(nn.Module):
    """Returns what forward saw of its argument."""

    def forward(self, x):
        return x


class Shapes(nn.Module):
    """Returns the leading dimension that forward saw."""

    def forward(self, *tensors):
        seen = torch.tensor([tensor.shape[0] if tensor.dim() else -1 for tensor in tensors])[None]
        return seen + tensors[0].sum().long() * 0


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(4),
        (torch.arange(4), torch.ones(4)),
        [torch.arange(4), (torch.ones(4), None)],
        {"b": torch.arange(4), "a": {"c": torch.ones(4)}},
        Pair(torch.arange(4), 3),
        Sample(torch.arange(4), [torch.ones(4)]),
    ],
    ids=["tensor", "tuple", "list", "dictionary", "named_tuple", "data_class"],
)
@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize("iterations", [1, 2])
def test_nested_inputs_and_outputs_keep_their_structure(value, tier, iterations):
    program = pilotage.inference(Seeing(), tier=tier, device_iterations=iterations)
    for _ in range(2):
        result = program(value)
        assert type(result) is type(value)
        assert str(result) == str(value)


@pytest.mark.parametrize(
    "options",
    [
        {"device_iterations": 6},
        {"replicas": 6},
        {"device_iterations": 2, "replicas": 3},
        {"device_iterations": 1, "replicas": 3},
    ],
)
def test_forward_sees_one_micro_batch_of_every_tensor(options):
    parts = options.get("device_iterations", 1) * options.get("replicas", 1)
    seen = pilotage.inference(Shapes(), **options)(torch.ones(12, 2), torch.ones(2 * parts))
    assert seen.shape == (parts, 2)
    assert {tuple(row) for row in seen.tolist()} == {(12 // parts, 2)}


def test_accumulation_splits_the_batch_too(network):
    seen = []

    class Looking(network):
        def forward(self, x):
            seen.append(x.shape[0])
            return super().forward(x)

    module = Looking()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = pilotage.training(module, optimizer, gradient_accumulation=3, device_iterations=2, tier="eager", check="off")
    step(torch.randn(12, 4))
    assert seen == [2] * 6


def test_one_micro_batch_takes_any_shape():
    assert pilotage.inference(Shapes())(torch.ones(5), torch.ones(())).tolist() == [[5, -1]]


@pytest.mark.parametrize("batch", [torch.ones(5, 2), torch.ones(()), torch.ones(3)], ids=["odd", "scalar", "few"])
def test_a_batch_that_cannot_be_split_is_refused_by_name(batch):
    program = pilotage.inference(Seeing(), device_iterations=4)
    with pytest.raises(
        BatchDimensionError, match=r"Invalid batch dimension: In the input x, .* must be a multiple of 4"
    ):
        program(batch)
    assert program(torch.ones(4)).shape == (4,)


def test_the_tensor_that_cannot_be_split_is_named_as_the_user_would_write_it():
    program = pilotage.inference(Seeing(), device_iterations=4)
    with pytest.raises(BatchDimensionError, match=r"In the input x\['a'\]\[1\], the batch dimension \(3\)"):
        program({"a": [torch.ones(4), torch.ones(3)]})


def test_an_empty_tensor_is_refused():
    with pytest.raises(InputError, match=r"Zero-sized tensors are unsupported \(Got shape \[0, 2\]\) for input x"):
        pilotage.inference(Seeing())(torch.ones(0, 2))


class Arguments(nn.Module):
    def forward(self, x, y=3, *rest, scale=1.0, **named):
        return x * scale + y + sum(rest) + sum(named.values())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (((1,), {}), ((1, 3), {})),
        (((1, 2), {}), ((), {"y": 2, "x": 1})),
        (((1,), {"scale": 2.0}), ((), {"scale": 2.0, "x": 1})),
        (((1,), {"a": 5, "b": 6}), ((1,), {"b": 6, "a": 5})),
    ],
)
def test_equivalent_calls_are_accepted(first, second):
    program = pilotage.inference(Arguments())
    results = []
    for args, kwargs in (first, second):
        args = tuple(torch.tensor([float(v)]) if i == 0 else v for i, v in enumerate(args))
        kwargs = {k: torch.tensor([float(v)]) if k == "x" else v for k, v in kwargs.items()}
        results.append((program(*args, **kwargs).item(), Arguments()(*args, **kwargs).item()))
    assert results[0] == results[1]
    assert results[0][0] == results[0][1]
    assert program.record.compilations == 1


ONE = torch.ones(2)


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((torch.ones(3),), {}, "Shape mismatch for x"),
        ((torch.ones(2, 1),), {}, "Shape mismatch for x"),
        ((torch.ones(2, dtype=torch.float64),), {}, "Data type mismatch for x"),
        ((torch.ones(2, dtype=torch.bool),), {}, "Data type mismatch for x"),
        ((ONE, 4), {}, "Value mismatch for y: expected 3 but got 4"),
        ((ONE, 3.0), {}, "Value mismatch for y: expected 3 but got 3.0"),
        ((ONE, ONE), {}, "Type mismatch for y: expected int but got torch.Tensor"),
        ((ONE, 3, 1), {}, "Number of positional arguments mismatch: expected 2 arguments but got 3"),
        ((5, 3), {}, "Type mismatch for x: expected torch.Tensor but got int"),
        ((ONE,), {"scale": 2.0}, "Value mismatch for"),
        ((ONE,), {"scale": 1}, "Value mismatch for"),
        ((ONE,), {"other": 1}, "Unexpected arguments: other"),
    ],
)
def test_a_different_later_call_is_refused_and_the_program_still_runs(args, kwargs, said):
    program = pilotage.inference(Arguments(), shapes=1)
    expected = program(ONE).tolist()
    with pytest.raises(InputError, match=said):
        program(*args, **kwargs)
    assert program(torch.ones(4)[::2]).tolist() == expected


class Difference(nn.Module):
    def forward(self, x, y):
        return x - y


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((ONE, torch.ones(3)), {}, "Shape mismatch for y"),
        ((ONE, torch.ones(2, dtype=torch.int32)), {}, "Data type mismatch for y"),
        ((ONE, 1.0), {}, "Type mismatch for y"),
        ((ONE,), {}, "Mandatory parameter y missing"),
        ((ONE, ONE, ONE), {}, "Too many arguments"),
        ((ONE, ONE), {"y": ONE}, "passed twice"),
    ],
)
def test_later_calls_with_only_tensors_are_checked_too(args, kwargs, said):
    program, three = pilotage.inference(Difference(), shapes=1), 3 * ONE
    program(ONE, ONE)
    assert program(three, ONE).tolist() == program(y=ONE, x=three).tolist() == program(three, y=ONE).tolist() == [2, 2]
    with pytest.raises(InputError, match=said):
        program(*args, **kwargs)
    assert program(ONE, three).tolist() == [-2, -2]
    assert program.record.compilations == 1


def test_arguments_that_forward_does_not_take_are_refused_before_anything_is_captured():
    program = pilotage.inference(Seeing())
    with pytest.raises(MissingArgumentError, match="Mandatory parameter x missing"):
        program()
    with pytest.raises(UnexpectedArgumentError, match="2 were given, forward takes 1"):
        program(ONE, ONE)
    with pytest.raises(UnexpectedArgumentError, match="'y'"):
        program(ONE, y=ONE)
    with pytest.raises(UnexpectedArgumentError, match="passed twice"):
        program(ONE, x=ONE)
    assert program.record.compilations == 0


def test_inputs_that_require_gradients_are_used_without_them(assert_equal):
    batch = torch.randn(3, requires_grad=True)
    result = pilotage.inference(Seeing())(batch)
    assert not result.requires_grad
    assert_equal(result, batch.detach())
    assert batch.grad is None


def test_trained_weights_can_be_inputs(pair, assert_equal):
    trained = pair()
    trained.train()
    program = pilotage.inference(Seeing())
    assert_equal(program(trained.module.norm.running_mean), trained.plain.norm.running_mean)
    assert_equal(program(trained.module.layer.bias), trained.plain.layer.bias.detach())
