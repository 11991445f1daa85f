from __future__ import annotations

import collections
import dataclasses
from typing import Any, NamedTuple

import pytest
import torch

from pilotage.errors import InputError
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten
from pilotage.runtime.call_comparison import refuse_difference


@dataclasses.dataclass
class Record:
    x: Any


class Pair(NamedTuple):
    x: Any
    y: Any


def compare(first, later):
    (tensors, structure), (later_tensors, later_structure) = flatten(first), flatten(later)
    specifications, later_specifications = map(TensorSpec.of, tensors), map(TensorSpec.of, later_tensors)
    refuse_difference(structure, later_structure, tuple(specifications), tuple(later_specifications), ["x", "y", "z"])


ONE, TWO = torch.zeros(1), torch.zeros(2)


@pytest.mark.parametrize(
    ("first", "later", "said"),
    [
        (((ONE, ONE), {}), ((ONE,), {}), "Number of positional arguments mismatch: expected 2 arguments but got 1"),
        (((ONE,), {}), ((TWO,), {}), r"Shape mismatch for x: expected torch.Size\(\[1\]\) but got torch.Size\(\[2\]\)"),
        (((ONE,), {}), ((ONE.long(),), {}), "Data type mismatch for x: expected torch.float32 but got torch.int64"),
        (((ONE, 5), {}), ((ONE, 3), {}), r"Value mismatch for y: expected 5 but got 3\. Pass .* torch\.tensor\(3\)"),
        (((ONE, "a"), {}), ((ONE, "b"), {}), "Value mismatch for y: expected a but got b. The program"),
        (((ONE, 5), {}), ((ONE, 5.0), {}), "Value mismatch for y: expected 5 but got 5.0"),
        (((ONE, None), {}), ((ONE, ONE), {}), "Type mismatch for y: expected NoneType but got torch.Tensor"),
        (((ONE, (ONE,)), {}), ((ONE, [ONE]), {}), "Type mismatch for y: expected tuple but got list"),
        (((ONE, (ONE,)), {}), ((ONE, (ONE, ONE)), {}), "Length mismatch for y: expected 1 but got 2"),
        (((ONE, (ONE, (ONE,))), {}), ((ONE, (ONE, (TWO,))), {}), r"Shape mismatch for y\[1\]\[0\]"),
        ((({"a": ONE},), {}), (({"a": TWO},), {}), r"Shape mismatch for x\['a'\]"),
        (({"a": ONE}, {}), ({"b": ONE}, {}), "Unexpected arguments: b. Missing arguments: a"),
        (((ONE,), {"m": ONE}), ((ONE,), {"m": TWO}), r"Shape mismatch for m:"),
        (((ONE,), {"m": ONE}), ((ONE,), {}), "Missing arguments: m"),
        (((Record(ONE),), {}), ((Record(TWO),), {}), r"Shape mismatch for x\.x"),
        (((Record(ONE),), {}), ((Pair(ONE, 1),), {}), "Type mismatch for x: expected Record but got Pair"),
        (((Pair(ONE, 1),), {}), ((Pair(ONE, 2),), {}), r"Value mismatch for x\[1\]"),
    ],
)
def test_the_first_difference_is_named(first, later, said):
    first = ((first[0],), {}) if isinstance(first[0], dict) else first
    later = ((later[0],), {}) if isinstance(later[0], dict) else later
    with pytest.raises(InputError, match=said + r".*destroy\(\)"):
        compare(first, later)


def test_calls_that_differ_only_in_tensor_values_are_equal():
    compare(((ONE, {"a": [TWO], "b": 3}), {"k": None}), ((ONE + 1, {"b": 3, "a": [TWO - 1]}), {"k": None}))


def test_the_kind_of_dictionary_does_not_matter():
    compare((({"a": ONE},), {}), ((collections.OrderedDict(a=ONE),), {}))
