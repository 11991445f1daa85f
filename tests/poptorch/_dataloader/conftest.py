"""Datasets of numbers, options for them, and what comes out of a loader."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import Dataset

from poptorch.options import Options


class Numbers(Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return torch.tensor([float(index)]), index


def make_options(iterations=1, replicas=1, accumulation=1):
    made = Options().deviceIterations(iterations).replicationFactor(replicas)
    made.Training.gradientAccumulation(accumulation)
    return made


def make_distributed(process, processes, *, seed=None, **batching):
    made = make_options(**batching)
    made.Distributed.configureProcessId(process, processes)
    return made if seed is None else made.randomSeed(seed)


@pytest.fixture(scope="session")
def numbered():
    """Make a dataset of this many numbers."""
    return Numbers


@pytest.fixture(scope="session")
def options():
    """Make options with this many micro-batches per call."""
    return make_options


@pytest.fixture(scope="session")
def distributed():
    """Make the options of one process of several."""
    return make_distributed


@pytest.fixture(scope="session")
def numbers_of():
    """Read a whole epoch."""
    return lambda loader: [int(number) for _, numbers in loader for number in numbers]
