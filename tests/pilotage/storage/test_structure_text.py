from __future__ import annotations

import collections
import dataclasses
import json
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pilotage.errors import CaptureError, ProgramFileError
from pilotage.program.structure import flatten, unflatten
from pilotage.storage.structure_text import structure_from_data, structure_to_data


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


values = st.recursive(
    st.just(torch.ones(1))
    | st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(collections.OrderedDict)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=10,
)


def through_text(structure):
    return structure_from_data(json.loads(json.dumps(structure_to_data(structure))))


@given(values)
def test_a_structure_can_be_written_and_read(value):
    tensors, structure = flatten(value)
    again = through_text(structure)
    assert again == structure
    assert str(unflatten(again, tensors)) == str(value)


def test_a_data_class_becomes_a_dictionary():
    tensors, structure = flatten(Point(torch.ones(1), 3))
    assert unflatten(through_text(structure), tensors) == {"x": tensors[0], "y": 3}


def test_an_unavailable_class_becomes_a_tuple():
    tensors, structure = flatten(Pair(torch.ones(1), 3))
    data = json.loads(json.dumps(structure_to_data(structure)).replace("Pair", "Gone"))
    assert unflatten(structure_from_data(data), tensors) == (tensors[0], 3)


def test_reading_imports_nothing():
    data = {"sequence": ["antigravity:anything", {"tensor": None}]}
    assert structure_from_data(data).kind is tuple
    import sys

    assert "antigravity" not in sys.modules


def test_only_container_classes_are_called():
    data = {"sequence": ["builtins:print", {"constant": "hello"}]}
    assert structure_from_data(data).kind is tuple


def test_values_that_cannot_be_written_are_refused():
    with pytest.raises(CaptureError, match=r"type range .*cannot be written"):
        structure_to_data(flatten([range(3)])[1])


def test_an_unknown_kind_is_refused():
    with pytest.raises(ProgramFileError, match="unknown kind 'magic'"):
        structure_from_data({"magic": None})
