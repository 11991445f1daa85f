"""The arguments of a loader."""

from __future__ import annotations

import inspect

import pytest
import torch

from poptorch._dataloader import DataLoader
from poptorch.enums import DataLoaderMode
from poptorch.options import Options

pytestmark = pytest.mark.slow


def test_the_arguments_have_the_documented_order_and_defaults():
    parameters = inspect.signature(DataLoader).parameters
    assert list(parameters) == [
        "options",
        "dataset",
        "batch_size",
        "shuffle",
        "num_workers",
        "drop_last",
        "persistent_workers",
        "auto_distributed_partitioning",
        "mode",
        "async_options",
        "rebatched_worker_size",
        "batch_sampler",
        "kwargs",
    ]
    defaults = [each.default for each in parameters.values()]
    assert defaults[2:-1] == [1, None, 0, True, None, True, DataLoaderMode.Sync, None, None, None]


def test_the_loader_is_torchs_and_drops_the_last_batch_by_default(numbered, numbers_of):
    loader = DataLoader(Options(), numbered(10), 4)
    assert isinstance(loader, torch.utils.data.DataLoader)
    assert loader.drop_last
    assert loader.batch_size == 4
    assert numbers_of(loader) == list(range(8))


@pytest.mark.parametrize("wrong", [None, 3, {}])
def test_options_of_another_type_are_refused(wrong, numbered):
    with pytest.raises(AssertionError, match="Options"):
        DataLoader(wrong, numbered(4))


def test_options_are_frozen(numbered):
    mine = Options()
    DataLoader(mine, numbered(4))
    with pytest.raises(AttributeError, match="Can't modify frozen Options"):
        mine.deviceIterations(2)


def test_workers_persist_if_there_are_any(numbered):
    assert not DataLoader(Options(), numbered(4)).persistent_workers
    assert DataLoader(Options(), numbered(4), num_workers=1).persistent_workers
    assert not DataLoader(Options(), numbered(4), num_workers=1, persistent_workers=False).persistent_workers


def test_a_mode_of_another_type_is_refused(numbered):
    with pytest.raises(AssertionError, match="DataLoaderMode"):
        DataLoader(Options(), numbered(4), mode="async")
