from __future__ import annotations

import pytest
import torch

import poptorch
from poptorch import _utils


class Batch:
    def __init__(self, x, y):
        self.x, self.y = x, y


class BatchParser(poptorch.ICustomArgParser):
    def yieldTensors(self, struct):  # noqa: N802
        yield struct.x
        yield struct.y

    def reconstruct(self, original_structure, tensor_iterator):
        return Batch(next(tensor_iterator), next(tensor_iterator))


@pytest.fixture
def parser():
    made = BatchParser()
    poptorch.registerCustomArgParser(Batch, made)
    yield made
    poptorch.registerCustomArgParser(Batch, None)


def test_registered_parsers_are_found_by_type_and_base_class(parser):
    derived = type("Derived", (Batch,), {})(1, 2)
    assert _utils.custom_arg_parsers[Batch] is parser
    assert _utils.getCustomParser(Batch(1, 2)) is _utils.getCustomParser(derived) is parser
    assert _utils.getCustomParser(torch.ones(1)) is None


def test_structures_are_taken_apart_and_rebuilt(parser):
    value = (torch.zeros(1), {"a": [torch.ones(1)], "b": Batch(torch.full((1,), 2.0), torch.full((1,), 3.0))})
    assert [each.item() for each in _utils.flattenTensorStructure(value)] == [0.0, 1.0, 2.0, 3.0]
    again = _utils.reconstructTensorStructure(value, iter(torch.arange(4.0) + 10))
    assert (again[0], again[1]["a"][0], again[1]["b"].x, again[1]["b"].y) == (10.0, 11.0, 12.0, 13.0)


def test_flat_batches_are_combined_position_by_position():
    batches = [[torch.tensor([1]), torch.tensor([[2]])], [torch.tensor([3]), torch.tensor([[4]])]]
    assert [each.tolist() for each in _utils.combine_batch_tensors_gen(batches)] == [[1, 3], [[2], [4]]]


@pytest.mark.parametrize(("drop_last", "expected"), [(True, [[0, 1]]), (False, [[0, 1], [2]])])
def test_batches_are_combined_in_groups(parser, drop_last, expected):
    batches = [Batch(torch.tensor([i]), torch.tensor([i])) for i in range(3)]
    combined = list(_utils.combined_batch_generator(iter(batches), 2, drop_last))
    assert [each.x.tolist() for each in combined] == [each.y.tolist() for each in combined] == expected
