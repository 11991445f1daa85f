from collections import namedtuple

import pytest
import torch

from pilotage.data.items import flatten_item
from pilotage.errors import InputError
from pilotage.program.structure import unflatten

Pair = namedtuple("Pair", "left right")
A, B = torch.rand(2), torch.rand(3)


class Graph:
    def __init__(self, nodes, edges, name):
        self.nodes, self.edges, self.name = nodes, edges, name


class GraphParser:
    def tensors(self, value):
        return [value.nodes, value.edges]

    def rebuild(self, original, tensors):
        return Graph(next(tensors), next(tensors), original.name)


def sent(item, parsers=None):
    tensors, structure = flatten_item(item, parsers or {})
    return unflatten(structure, tensors)


def test_a_tensor_arrives_as_a_tensor():
    assert sent(A) is A


@pytest.mark.parametrize("item", [[A, B], (A, B), Pair(A, B)], ids=["list", "tuple", "named tuple"])
def test_a_sequence_arrives_as_a_list(item):
    arrived = sent(item)
    assert type(arrived) is list
    assert arrived[0] is A
    assert arrived[1] is B


def test_a_dictionary_keeps_the_order_of_its_names():
    arrived = sent({"b": B, "a": A})
    assert list(arrived) == ["b", "a"]
    assert arrived["a"] is A


def test_dictionaries_with_the_same_keys_match_in_any_order():
    tensors, structure = flatten_item({"b": B, "a": A}, {})
    others, other = flatten_item({"a": A, "b": B}, {})
    assert structure == other
    assert all(one is another for one, another in zip(tensors, others, strict=True))


def test_a_structure_contains_no_tensors():
    _, structure = flatten_item({"b": B}, {})
    assert structure.template == {"b": None}


def test_an_object_with_a_parser_keeps_its_type():
    arrived = sent(Graph(A, B, "ring"), {Graph: GraphParser()})
    assert isinstance(arrived, Graph)
    assert arrived.edges is B
    assert arrived.name == "ring"


@pytest.mark.parametrize(
    "item",
    [[A, [B]], {"a": {"b": A}}, {1: A}, [A, 5], [], {}, "text", 3, None, Graph(A, B, "ring"), [A, "text"]],
    ids=lambda item: type(item).__name__,
)
def test_anything_else_is_refused_by_name(item):
    with pytest.raises(InputError, match=f"An item must be .* not {type(item).__name__}"):
        flatten_item(item, {})
