"""Arguments survive the way through JSON, and what no program wrote is refused."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.fx import Graph

from pilotage.errors import CaptureError, ProgramFileError
from pilotage.storage.argument_text import argument_from_data, argument_to_data
from pilotage.storage.plain_data import MAXIMUM_DEPTH

GRAPH = Graph()
NODES = [GRAPH.placeholder(f"x{number}") for number in range(3)]
NUMBERS = {node: number for number, node in enumerate(NODES)}

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(),
    st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), max_size=20),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
    st.sampled_from(NODES),
    st.sampled_from([torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64]),
    st.sampled_from([torch.device("cpu"), torch.device("cuda", 3), torch.device("meta")]),
    st.sampled_from([torch.channels_last, torch.contiguous_format, torch.preserve_format]),
    st.sampled_from([torch.strided, torch.sparse_coo]),
)
ARGUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3),
        st.builds(slice, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9) | st.sampled_from(NODES)),
    ),
    max_leaves=10,
)


def through_json(value):
    return argument_from_data(json.loads(json.dumps(argument_to_data(value, NUMBERS))), NODES)


def same(one, other):
    """Equality that tells types apart and in which NaN is itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, slice):
        return same([one.start, one.stop, one.step], [other.start, other.stop, other.step])
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one is other if one in NODES else bool(one == other)


@given(ARGUMENTS)
def test_every_argument_comes_back_from_json_with_its_type(value):
    assert same(through_json(value), value)


def test_an_object_without_a_written_form_is_refused():
    with pytest.raises(CaptureError, match="An argument of type Generator cannot be written to a file"):
        argument_to_data(torch.Generator(), NUMBERS)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"node": 3}, "the number of a node"),
        ({"node": -1}, "the number of a node"),
        ({"node": True}, "the number of a node"),
        ({"dtype": "float33"}, "a data type"),
        ({"device": "cuda:1; import os"}, "a device"),
        ({"device": 7}, "a device"),
        ({"memory_format": "torch.strided"}, "a memory_format"),
        ({"layout": "torch.channels_last"}, "a layout"),
        ({"float": "1.5"}, "a float"),
        ({"complex": [1.0, "2"]}, "a complex number"),
        ({"slice": [1, 2, 3, 4]}, "a slice"),
        ({"eval": "1"}, "the unknown kind 'eval'"),
        ({"node": 0, "dtype": "float32"}, "an argument"),
        ({}, "an argument"),
        (1 << 63, "an argument"),
        ("two\nlines", "an argument"),
    ],
)
def test_what_was_not_written_here_is_refused(data, reason):
    with pytest.raises(ProgramFileError, match=reason):
        argument_from_data(data, NODES)


def test_deep_nesting_is_refused_before_python_gives_up():
    deepest = 0
    for _ in range(MAXIMUM_DEPTH):
        deepest = [deepest]
    assert argument_from_data(deepest, NODES) == deepest
    with pytest.raises(ProgramFileError, match=f"nested more than {MAXIMUM_DEPTH} deep"):
        argument_from_data({"tuple": [deepest]}, NODES)
