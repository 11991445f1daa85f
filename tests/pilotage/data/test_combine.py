from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pilotage.data.combine import concatenate, grouped
from pilotage.errors import InputError

Pair = namedtuple("Pair", "left right")


@dataclass
class Sample:
    image: torch.Tensor
    label: torch.Tensor


def rows(*values):
    return torch.tensor([[float(value)] for value in values])


@given(batches=st.integers(0, 30), size=st.integers(1, 8), drop_last=st.booleans())
def test_grouping_keeps_the_order_and_drops_only_an_incomplete_group(batches, size, drop_last):
    groups = list(grouped([rows(number) for number in range(batches)], size, drop_last=drop_last))
    kept = batches - batches % size if drop_last else batches
    assert [int(value) for group in groups for value in group] == list(range(kept))
    assert all(len(group) == size for group in groups[:-1])


def test_tensors_and_arrays_are_joined_along_the_first_dimension():
    assert torch.equal(concatenate([rows(1, 2), rows(3)]), rows(1, 2, 3))
    assert np.array_equal(concatenate([np.ones((2, 3)), np.zeros((1, 3))]), [[1] * 3, [1] * 3, [0] * 3])


def test_every_kind_of_container_keeps_its_type():
    def batch(value):
        return {
            "list": [rows(value), rows(-value)],
            "tuple": (rows(value), {"deep": rows(value)}),
            "pair": Pair(rows(value), rows(value)),
            "ordered": OrderedDict(b=rows(value), a=rows(value)),
            "default": defaultdict(list, key=rows(value)),
            "record": Sample(rows(value), rows(value)),
        }

    joined = concatenate([batch(1), batch(2)])
    assert torch.equal(joined["list"][1], rows(-1, -2))
    assert torch.equal(joined["tuple"][1]["deep"], rows(1, 2))
    assert isinstance(joined["tuple"], tuple)
    assert isinstance(joined["pair"], Pair)
    assert torch.equal(joined["pair"].right, rows(1, 2))
    assert list(joined["ordered"]) == ["b", "a"]
    assert isinstance(joined["ordered"], OrderedDict)
    assert joined["default"].default_factory is list
    assert torch.equal(joined["record"].label, rows(1, 2))


def test_concatenating_does_not_change_the_batches():
    first, second = {"x": rows(1)}, {"x": rows(2)}
    concatenate([first, second])
    assert torch.equal(first["x"], rows(1))


def test_lists_of_names_are_concatenated():
    assert concatenate([["cat", "dog"], ["owl"]]) == ["cat", "dog", "owl"]


def test_a_value_that_all_batches_share_is_unchanged():
    joined = concatenate([{"classes": 10, "x": rows(1)}, {"classes": 10, "x": rows(2)}])
    assert joined["classes"] == 10


def test_values_that_cannot_be_concatenated_are_named():
    with pytest.raises(InputError, match="type int cannot be concatenated"):
        concatenate([{"classes": 10}, {"classes": 11}])


def test_batches_of_different_structures_are_refused():
    with pytest.raises(InputError, match="the same keys"):
        concatenate([{"a": rows(1)}, {"b": rows(1)}])
    with pytest.raises(InputError, match=r"the same number of members, but have \[1, 2\]"):
        concatenate([[rows(1)], [rows(1), rows(2)]])


class Parser:
    def tensors(self, value):
        return list(value.tensors)

    def rebuild(self, original, tensors):
        return Parsed(*tensors, note=original.note)


class Parsed:
    def __init__(self, *tensors, note):
        self.tensors, self.note = tensors, note


def test_objects_with_a_parser_become_one_like_the_last():
    batches = [{"a": Parsed(torch.tensor([n]), torch.tensor([[n]]), note=n)} for n in (1, 2)]
    joined = concatenate(batches, {Parsed: Parser()})["a"]
    assert [each.tolist() for each in joined.tensors] == [[1, 2], [[1], [2]]]
    assert joined.note == 2


def test_objects_with_different_numbers_of_tensors_are_refused():
    with pytest.raises(InputError, match=r"the same number of tensors, but have \[1, 2\]"):
        concatenate([Parsed(torch.ones(1), note=0), Parsed(*torch.ones(2, 1), note=0)], {Parsed: Parser()})
