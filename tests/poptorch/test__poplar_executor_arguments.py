"""How a wrapped model handles the arguments of its calls."""

from __future__ import annotations

import re
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import poptorch

ONE = torch.ones(1)
TWO = torch.full((1,), 2.0)
Pair = namedtuple("Pair", ["left", "right"])


@dataclass
class Sample:
    image: torch.Tensor
    label: torch.Tensor
    kind: str = "train"


class Five(nn.Module):
    def forward(self, x, y, z=None, u=5, v="plus"):
        first = x + y if v == "plus" else x - y
        return (first if z is None else first + z) * u


class Rest(nn.Module):
    def forward(self, x, *args, scale=2, **kwargs):
        return (x + sum(args) + sum(value * (len(name)) for name, value in sorted(kwargs.items()))) * scale


def wrapped(function, **options):
    made = poptorch.Options()
    for name, value in options.items():
        getattr(made, name)(value)
    return poptorch.inferenceModel(function, made)


# Binding arguments


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((ONE, TWO), {}),
        ((ONE,), {"y": TWO}),
        ((), {"y": TWO, "x": ONE}),
        ((ONE, TWO, None, 5), {}),
        ((ONE, TWO), {"u": 5, "v": "plus"}),
        ((ONE, TWO, None, 5, "plus"), {}),
    ],
)
def test_equivalent_calls_are_accepted(args, kwargs):
    model = wrapped(Five())
    assert model(ONE, TWO).tolist() == [15.0]
    assert model(*args, **kwargs).tolist() == [15.0]
    first = wrapped(Five())
    assert first(*args, **kwargs).tolist() == [15.0]
    assert first(ONE, TWO).tolist() == [15.0]


def test_optional_tensors_and_constants_reach_forward():
    assert wrapped(Five())(ONE, TWO, TWO, 3, "minus").tolist() == [3.0]
    assert wrapped(Five())(ONE, TWO, v="minus").tolist() == [-5.0]


def test_further_positional_and_keyword_arguments_are_passed_on():
    model = wrapped(Rest())
    expected = Rest()(ONE, TWO, TWO, ab=ONE, c=TWO)
    assert torch.equal(model(ONE, TWO, TWO, ab=ONE, c=TWO), expected)
    assert torch.equal(model(ONE, TWO, TWO, c=TWO, ab=ONE), expected)
    assert torch.equal(model(TWO, TWO, TWO, c=TWO, ab=ONE), Rest()(TWO, TWO, TWO, ab=ONE, c=TWO))


@pytest.mark.parametrize("training", [True, False])
def test_arguments_are_handled_the_same_way_in_training(training):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(1, 1)

        def forward(self, *, target, batch):
            return poptorch.identity_loss(self.layer(batch) - target, "mean")

    torch.manual_seed(0)
    module = Model()
    expected = module(target=ONE, batch=TWO)
    model = poptorch.trainingModel(module) if training else poptorch.inferenceModel(module)
    assert torch.equal(model(batch=TWO, target=ONE), expected)


NESTED = {
    "tuple": (lambda a, b: (a, (b,)), lambda value: value[0] - value[1][0]),
    "list": (lambda a, b: [a, [b]], lambda value: value[0] - value[1][0]),
    "dict": (lambda a, b: {"a": a, "b": b}, lambda value: value["a"] - value["b"]),
    "dict in another order": (lambda a, b: {"b": b, "a": a}, lambda value: value["a"] - value["b"]),
    "ordered dict": (lambda a, b: OrderedDict(a=a, b=b), lambda value: value["a"] - value["b"]),
    "named tuple": (Pair, lambda value: value.left - value.right),
    "data class": (Sample, lambda value: value.image - value.label if value.kind == "train" else None),
    "mixed": (lambda a, b: [{"p": Pair(a, 3)}, (None, b)], lambda v: v[0]["p"].left * v[0]["p"].right - v[1][1]),
}


@pytest.mark.parametrize("kind", NESTED)
def test_tensors_are_found_in_nested_values(kind):
    build, forward = NESTED[kind]
    model = wrapped(forward)
    for a, b in [(ONE, TWO), (TWO * 3, ONE)]:
        assert torch.equal(model(build(a, b)), forward(build(a, b)))


def test_the_order_of_keys_may_change_from_call_to_call():
    model = wrapped(lambda value: value["a"] - value["b"])
    assert model({"a": ONE, "b": TWO}).item() == -1.0
    assert model({"b": ONE, "a": TWO}).item() == 1.0


class Cell:
    def __init__(self, inside, name):
        self.inside = inside
        self.name = name


class CellParser(poptorch.ICustomArgParser):
    def yieldTensors(self, struct):  # noqa: N802
        yield from struct.inside

    def reconstruct(self, original_structure, tensor_iterator):
        inside = [next(tensor_iterator) for _ in original_structure.inside]
        return Cell(inside, original_structure.name)


def test_objects_with_a_parser_can_be_passed_and_returned():
    poptorch.registerCustomArgParser(Cell, CellParser())
    try:
        model = wrapped(lambda cell: Cell([each * 2 for each in cell.inside], "doubled"))
        result = model(Cell([ONE, TWO], "given"))
        again = model(Cell([TWO, TWO], "given"))
    finally:
        poptorch.registerCustomArgParser(Cell, None)
    assert type(result) is Cell
    assert (result.name, [each.item() for each in result.inside]) == ("doubled", [2.0, 4.0])
    assert [each.item() for each in again.inside] == [4.0, 4.0]


# Refused calls


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "said"),
    [
        ((ONE, TWO, None, 5, "plus", ONE), {}, AssertionError, "Too many arguments"),
        ((ONE, TWO), {"w": ONE}, AssertionError, "Unexpected keyword argument 'w'"),
        ((ONE, TWO), {"x": ONE}, AssertionError, "x was passed twice"),
        ((ONE,), {}, poptorch.Error, "Mandatory parameter y missing"),
        ((), {"x": ONE}, poptorch.Error, "Mandatory parameter y missing"),
    ],
)
def test_a_call_that_forward_does_not_take_is_refused(args, kwargs, error, said):
    for compile_first in (False, True):
        model = wrapped(Five())
        if compile_first:
            model.compile(ONE, TWO)
        with pytest.raises(error, match=said):
            model(*args, **kwargs)


FIRST = (ONE, (ONE, ONE), {"x": ONE, "y": ONE}, None, 5)


class Named(nn.Module):
    def forward(self, t, pair, table, nothing, u, *rest, **named):
        everything = (t, *pair, *table.values(), *rest, *named.values())
        return sum(everything) * u if nothing is None else everything


@pytest.mark.parametrize(
    ("later", "named", "said"),
    [
        ((*FIRST, ONE), {}, "Number of positional arguments mismatch: expected 5 arguments but got 6"),
        ((ONE.long(), *FIRST[1:]), {}, "expected torch.float32 but got torch.int64"),
        ((ONE.half(), *FIRST[1:]), {}, "for t: expected torch.float32 but got torch.float16"),
        ((torch.ones(2), *FIRST[1:]), {}, r"expected torch.Size([1]) but got torch.Size([2])"),
        ((torch.ones(1, 1), *FIRST[1:]), {}, r"expected torch.Size([1]) but got torch.Size([1, 1])"),
        ((3.0, *FIRST[1:]), {}, "Type mismatch for t: expected torch.Tensor but got float"),
        ((ONE, (ONE,), *FIRST[2:]), {}, "Length mismatch for pair: expected 2 but got 1"),
        ((ONE, [ONE, ONE], *FIRST[2:]), {}, "Type mismatch for pair: expected tuple but got list"),
        ((ONE, (ONE, torch.ones(2)), *FIRST[2:]), {}, r"pair[1]: expected torch.Size([1]) but got torch.Size([2])"),
        ((*FIRST[:2], {"x": ONE, "y": ONE, "z": ONE}, *FIRST[3:]), {}, "Unexpected arguments: z."),
        ((*FIRST[:2], {"y": ONE}, *FIRST[3:]), {}, "Missing arguments: x."),
        ((*FIRST[:2], {"y": ONE, "z": ONE}, *FIRST[3:]), {}, "Unexpected arguments: z. Missing arguments: x."),
        ((*FIRST[:3], 1, 5), {}, "Value mismatch for nothing: expected None but got 1"),
        ((*FIRST[:4], 3), {}, "Value mismatch for u: expected 5 but got 3"),
        ((*FIRST[:4], 5.0), {}, "Value mismatch for u: expected 5 but got 5.0"),
        (FIRST, {"k": ONE}, "Keys mismatch for keyword arguments: Unexpected arguments: k."),
    ],
)
def test_a_later_call_that_differs_is_refused_with_the_difference(later, named, said):
    model = wrapped(Named())
    first = model(*FIRST)
    with pytest.raises(poptorch.Error, match=re.escape(said)):
        model(*later, **named)
    assert torch.equal(model(*FIRST), first)


def test_a_later_keyword_argument_that_differs_is_named():
    model = wrapped(Rest())
    model(ONE, k=ONE)
    with pytest.raises(poptorch.Error, match="Value mismatch for scale: expected 2 but got 3"):
        model(ONE, k=ONE, scale=3)
    with pytest.raises(poptorch.Error, match=r"for k: expected torch.Size\(\[1\]\) but got torch.Size\(\[2\]\)"):
        model(ONE, k=torch.ones(2))
    with pytest.raises(poptorch.Error, match=r"Unexpected arguments: l\. Missing arguments: k\."):
        model(ONE, l=ONE)


def test_lists_must_have_the_compiled_number_of_tensors():
    model = wrapped(lambda items: sum(items))
    model([ONE, ONE])
    assert model([TWO, ONE]).item() == 3.0
    for other in ([ONE], [ONE, ONE, ONE], [ONE, torch.ones(2)]):
        with pytest.raises(poptorch.Error, match="mismatch"):
            model(other)


def test_the_same_wrapper_can_be_compiled_for_other_calls_after_destroy():
    model = wrapped(Five())
    assert model(ONE, ONE).shape == (1,)
    model.destroy()
    assert not model.isCompiled()
    assert model(torch.ones(3), torch.ones(3), u=2).tolist() == [4.0, 4.0, 4.0]


# The batch dimension


@pytest.mark.slow
@given(
    iterations=st.integers(1, 3),
    replicas=st.sampled_from([1, 2, 4]),
    accumulation=st.integers(1, 3),
    group=st.sampled_from([1, 2]),
    size=st.integers(1, 30),
    position=st.integers(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_every_tensor_has_to_be_divisible_into_micro_batches(iterations, replicas, accumulation, group, size, position):
    options = poptorch.Options().deviceIterations(iterations).replicationFactor(replicas)
    options.showCompilationProgressBar(False)
    if group <= replicas:
        options.inputReplicaGrouping(group, poptorch.CommGroupType.Consecutive)
    else:
        group = 1
    options.Training.gradientAccumulation(accumulation)
    parts = iterations * (replicas // group) * accumulation
    model = poptorch.trainingModel(Seen(), options)
    fits = torch.ones(2 * parts, 3)
    inputs = [fits, fits]
    inputs[position] = torch.ones(size, 3)
    if size % parts:
        with pytest.raises(AssertionError, match=f"Invalid batch dimension.*{size}.*multiple of {parts}"):
            model(*inputs)
    else:
        model.compile(*inputs)
        assert model.engine.module.shapes[position] == (size // parts, 3)


class Seen(nn.Module):
    """Keeps the shapes that its forward saw."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.shapes = []

    def forward(self, *inputs):
        self.shapes[:] = [tuple(each.shape) for each in inputs]
        return poptorch.identity_loss(sum(each.sum() for each in inputs) * self.weight, "none")


def test_a_scalar_input_needs_a_single_micro_batch():
    assert wrapped(lambda x, k: x * k)(torch.ones(2), torch.tensor(3.0)).tolist() == [3.0, 3.0]
    with pytest.raises(AssertionError, match="Invalid batch dimension"):
        wrapped(lambda x, k: x * k, deviceIterations=2)(torch.ones(2), torch.tensor(3.0))


def test_tensors_in_structures_are_split_too():
    model = wrapped(lambda table: table["a"][0].sum() + table["b"].sum(), deviceIterations=2)
    assert model({"a": (torch.ones(4),), "b": torch.ones(2)}).tolist() == [3.0, 3.0]
    with pytest.raises(AssertionError, match=r"Invalid batch dimension.*table\['b'\]"):
        wrapped(lambda table: table["a"][0], deviceIterations=2)({"a": (torch.ones(4),), "b": torch.ones(3)})


def test_a_tensor_without_elements_is_refused():
    with pytest.raises(poptorch.Error, match=r"Zero-sized tensors are unsupported \(Got shape \[0, 2, 5, 5\]\)"):
        wrapped(lambda x: x + 1)(torch.ones(0, 2, 5, 5))
