"""How a call of another size is divided into micro-batches."""

from __future__ import annotations

import pytest
import torch

from pilotage.errors import BatchDimensionError
from pilotage.options.batching import Batching
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten
from pilotage.runtime.call import BoundCall
from pilotage.runtime.shapes.division import divided

USUAL = [TensorSpec.of(torch.empty(4, 3))]


def division(rows, length=3, **batching):
    tensors, structure = flatten(((torch.empty(rows, length),), {}))
    found = divided(BoundCall(structure, tensors, tensors), USUAL, Batching(**batching), ["x"])
    return found.device_iterations, found.gradient_accumulation


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(40, (5, 2)), (24, (3, 2)), (8, (1, 2)), (4, (1, 1)), (3, (1, 1)), (1, (1, 1)), (50, (5, 2))],
)
def test_rows_are_divided_as_in_the_first_call_if_possible(rows, expected):
    assert division(rows, device_iterations=5, gradient_accumulation=2) == expected


def test_another_length_does_not_change_the_number_of_micro_batches():
    assert division(24, length=9, device_iterations=5, gradient_accumulation=2) == (3, 2)


def test_one_micro_batch_may_have_any_size():
    assert division(7) == (1, 1)


def test_rows_that_cannot_be_divided_are_refused_with_those_that_can():
    with pytest.raises(BatchDimensionError, match=r"has 13 rows.*10 micro-batches.*4 rows each.*multiples of 2"):
        division(13, device_iterations=5, gradient_accumulation=2)


def test_replicas_take_only_full_rounds():
    assert division(8, device_iterations=3, replicas=2) == (1, 1)
    with pytest.raises(BatchDimensionError, match="multiples of 2"):
        division(4, device_iterations=3, replicas=2)
