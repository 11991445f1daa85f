from __future__ import annotations

import collections
import dataclasses
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pilotage.program.structure import call_paths, count_tensors, flatten, rebuilder, tensor_paths, unflatten


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class FrozenPoint:
    x: Any
    y: Any


tensors = st.integers(0, 99).map(lambda number: torch.tensor([number]))
constants = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False)
values = st.recursive(
    tensors | constants,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(collections.OrderedDict)
        | st.builds(Pair, inner, inner)
        | st.builds(Point, inner, inner)
        | st.builds(FrozenPoint, inner, inner)
    ),
    max_leaves=12,
)


def contents(value: Any) -> Any:
    """A nested value with plain numbers for tensors, so that it can be compared."""
    if isinstance(value, Tensor):
        return ("tensor", value.item())
    if isinstance(value, dict):
        return (type(value), [(key, contents(item)) for key, item in value.items()])
    if dataclasses.is_dataclass(value):
        return (type(value), [contents(getattr(value, field.name)) for field in dataclasses.fields(value)])
    if isinstance(value, (list, tuple)):
        return (type(value), [contents(item) for item in value])
    return (type(value), value)


@given(values)
def test_a_flattened_value_can_be_rebuilt(value):
    found, structure = flatten(value)
    assert contents(unflatten(structure, found)) == contents(value)
    assert count_tensors(structure) == len(found) == len(list(tensor_paths(structure, "value")))


@given(values)
def test_rebuilding_with_other_tensors_leaves_the_original_unchanged(value):
    before = contents(value)
    found, structure = flatten(value)
    doubled = unflatten(structure, [tensor * 2 + 1 for tensor in found])
    assert [tensor.item() for tensor in flatten(doubled)[0]] == [tensor.item() * 2 + 1 for tensor in found]
    assert contents(value) == before


@given(values)
def test_a_function_made_for_one_structure_rebuilds_like_the_general_one(value):
    found, structure = flatten(value)
    rebuild = rebuilder(structure)
    for tensors in (found, [tensor + 1 for tensor in found]):
        # More outputs than the structure holds, such as anchors, are left out.
        rebuilt = rebuild([*tensors, torch.tensor([99])])
        assert contents(rebuilt) == contents(unflatten(structure, tensors))


@given(values, values)
def test_structures_are_equal_exactly_if_values_differ_only_in_tensors(one, other):
    def shape(value):
        return contents(unflatten(flatten(value)[1], iter(lambda: torch.tensor([0]), None)))

    def in_order(content):
        kind, items = content
        if isinstance(items, list) and issubclass(kind, dict):
            return (dict, sorted((key, in_order(item)) for key, item in items))
        return (kind, [in_order(item) for item in items]) if isinstance(items, list) else content

    same = repr(in_order(shape(one))) == repr(in_order(shape(other)))
    if same:
        assert flatten(one)[1] == flatten(other)[1]
    elif flatten(one)[1] == flatten(other)[1]:
        # Only the sign of zero is ignored.
        assert repr(in_order(shape(one))).replace("-0.0", "0.0") == repr(in_order(shape(other))).replace("-0.0", "0.0")


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0, False), (0.0, False), ("1", 1), (None, False)])
def test_constants_of_different_types_are_different(one, other):
    assert flatten(one)[1] != flatten(other)[1]


@pytest.mark.parametrize(
    "value",
    [float("nan"), numpy.arange(3), numpy.array([]), object(), range(3), torch.float32, slice(1, 2)],
    ids=lambda value: type(value).__name__,
)
def test_a_constant_equals_itself(value):
    assert flatten((value, 1))[1] == flatten((value, 1))[1]


def test_equal_arrays_are_equal_constants_and_others_are_not():
    assert flatten(numpy.arange(3))[1] == flatten(numpy.arange(3))[1]
    assert flatten(numpy.arange(3))[1] != flatten(numpy.arange(4))[1]
    assert flatten(numpy.arange(3))[1] != flatten(numpy.arange(3.0))[1]


def test_dictionaries_are_equal_whatever_their_order():
    one = {"a": torch.ones(1), "b": torch.zeros(1)}
    other = {"b": torch.zeros(1), "a": torch.ones(1)}
    assert flatten(one)[1] == flatten(other)[1]
    assert [t.item() for t in flatten(one)[0]] == [t.item() for t in flatten(other)[0]] == [1.0, 0.0]


def test_a_dictionary_comes_back_in_its_own_order():
    found, structure = flatten({"b": torch.ones(1), "a": torch.zeros(1)})
    assert list(unflatten(structure, found)) == ["b", "a"]


def test_changing_a_dictionary_does_not_change_its_structure():
    given = {"a": torch.ones(1), "b": 2}
    found, structure = flatten(given)
    del given["b"]
    assert unflatten(structure, found) == {"a": found[0], "b": 2}


def test_a_structure_keeps_no_tensor_of_a_plain_dictionary_alive():
    _, structure = flatten({"a": torch.ones(1)})
    assert structure.template == {"a": None}


def test_named_tuples_of_torch_are_rebuilt():
    found, structure = flatten(torch.ones(2, 3).max(dim=1))
    again = unflatten(structure, found)
    assert type(again) is torch.return_types.max
    assert again.values is found[0]
    assert again.indices is found[1]


def test_a_tensor_is_named_as_the_user_would_write_it():
    _, structure = flatten({"image": [torch.ones(1), Point(torch.ones(1), 3)]})
    assert list(tensor_paths(structure, "batch")) == ["batch['image'][0]", "batch['image'][1].x"]


def test_the_tensors_of_a_call_are_named_after_the_parameters():
    _, call = flatten(((torch.ones(1), (torch.ones(1),), torch.ones(1)), {"mask": torch.ones(1)}))
    assert list(call_paths(call, ["x", "pair"])) == ["x", "pair[0]", "args[2]", "mask"]


class Graph:
    """An object that Python's containers do not cover."""

    def __init__(self, nodes, edges, name):
        self.nodes, self.edges, self.name = nodes, edges, name


class GraphParser:
    def tensors(self, value):
        return (value.nodes, value.edges)

    def rebuild(self, original, tensors):
        return Graph(next(tensors), next(tensors), original.name)


def test_objects_use_the_parser_of_their_class_or_a_base_class():
    class Special(Graph):
        pass

    for kind in (Graph, Special):
        found, structure = flatten([kind(torch.ones(1), torch.zeros(2), "g")], {Graph: GraphParser()})
        assert count_tensors(structure) == 2
        assert list(tensor_paths(structure, "x")) == ["x[0]<0>", "x[0]<1>"]
        (again,) = unflatten(structure, [t + 1 for t in found])
        assert (again.nodes.tolist(), again.edges.tolist(), again.name) == ([2.0], [1.0, 1.0], "g")


def test_without_a_parser_an_object_is_a_constant():
    found, structure = flatten(Graph(torch.ones(1), torch.ones(1), "g"))
    assert found == []
    assert count_tensors(structure) == 0
