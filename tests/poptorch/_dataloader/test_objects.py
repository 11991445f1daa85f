"""Batches of the user's own types, in every mode of the loader."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import pytest
import torch

import poptorch
from poptorch._dataloader import DataLoader
from poptorch.enums import DataLoaderMode, SharingStrategy

pytestmark = pytest.mark.slow


class Graphs:
    """A batch with a parser, and an attribute that is not a tensor."""

    def __init__(self, x, number, name):
        self.x, self.number, self.name = x, number, name


class GraphsParser(poptorch.ICustomArgParser):
    def yieldTensors(self, struct):  # noqa: N802
        yield struct.x
        yield struct.number

    def reconstruct(self, original_structure, tensor_iterator):
        return Graphs(next(tensor_iterator), next(tensor_iterator), original_structure.name)


class Pair(NamedTuple):
    x: Any
    number: Any


@dataclasses.dataclass
class Record:
    x: Any
    number: Any


def stacked(samples):
    return torch.stack([x for x, _ in samples]), torch.tensor([number for _, number in samples])


def as_graphs(samples):
    return Graphs(*stacked(samples), name=f"up to {samples[-1][1]}")


def as_pair(samples):
    return Pair(*stacked(samples))


def as_record(samples):
    return Record(*stacked(samples))


def as_dict(samples):
    return dict(zip(("x", "number"), stacked(samples), strict=True))


class Unmeasured:
    """A sampler of batches without a length."""

    def __iter__(self):
        return iter([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]])


@pytest.fixture(autouse=True)
def parser():
    poptorch.registerCustomArgParser(Graphs, GraphsParser())
    yield
    poptorch.registerCustomArgParser(Graphs, None)


def numbers_of(batch):
    if isinstance(batch, dict):
        return batch["number"].tolist()
    if isinstance(batch, (tuple, list)):
        return batch[1].tolist()
    return batch.number.tolist()


COLLATIONS = [
    as_graphs,
    *(pytest.param(each, marks=pytest.mark.long) for each in (as_pair, as_record, as_dict, stacked)),
]


def load(numbered, options, mode, collate, *, workers=0, **arguments):
    more = {} if mode is DataLoaderMode.Sync else {"async_options": {"sharing_strategy": SharingStrategy.Fork}}
    loader = DataLoader(
        options(2), numbered(10), mode=mode, num_workers=workers, collate_fn=collate, **more, **arguments
    )
    read = [(type(batch), numbers_of(batch), getattr(batch, "name", None)) for batch in loader]
    loader.terminate()
    return read


@pytest.mark.parametrize("mode", list(DataLoaderMode))
@pytest.mark.parametrize("collate", COLLATIONS)
def test_batches_of_a_sampler_are_combined(mode, collate, numbered, options):
    sampler = torch.utils.data.BatchSampler(range(10), 2, drop_last=True)
    read = load(numbered, options, mode, collate, batch_sampler=sampler)
    assert [numbers for _, numbers, _ in read] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    if collate is as_graphs:
        assert {kind for kind, _, _ in read} == {Graphs}


@pytest.mark.parametrize("mode", list(DataLoaderMode))
def test_batches_are_made_of_whole_calls_by_workers(mode, numbered, options):
    read = load(numbered, options, mode, as_graphs, workers=1, batch_size=2)
    assert [numbers for _, numbers, _ in read] == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize(("drop_last", "last"), [(True, []), (False, [[8, 9]])])
def test_a_sampler_without_a_length_is_read_to_its_end(drop_last, last, numbered, options):
    read = load(numbered, options, DataLoaderMode.Sync, as_graphs, batch_sampler=Unmeasured(), drop_last=drop_last)
    assert [numbers for _, numbers, _ in read] == [[0, 1, 2, 3], [4, 5, 6, 7], *last]
    # The last batch that was read is the template.
    assert read[0][2] == "up to 3"
    if drop_last:
        asynchronous = load(numbered, options, DataLoaderMode.Async, as_graphs, batch_sampler=Unmeasured())
        assert [numbers for _, numbers, _ in asynchronous] == [numbers for _, numbers, _ in read]
