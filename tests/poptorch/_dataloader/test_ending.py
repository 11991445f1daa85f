"""The end of a loader, and of the process that reads ahead for it."""

from __future__ import annotations

import gc
import multiprocessing

import pytest
import torch
from torch.utils.data import TensorDataset

from poptorch._dataloader import DataLoader
from poptorch.enums import DataLoaderMode, SharingStrategy
from poptorch.options import Options

pytestmark = pytest.mark.slow

FORK = {"sharing_strategy": SharingStrategy.Fork}


def a_running_loader():
    loader = DataLoader(Options(), TensorDataset(torch.arange(9)), mode=DataLoaderMode.Async, async_options=FORK)
    next(iter(loader))
    (process,) = (child.pid for child in multiprocessing.active_children() if child.name == "pilotage-fetcher")
    return loader, process


def test_terminating_ends_the_process(ends):
    loader, process = a_running_loader()
    loader.terminate()
    assert ends(process)
    with pytest.raises(AssertionError, match="terminated"):
        iter(loader)


def test_a_deleted_loader_ends_its_process_at_once(ends):
    gc.disable()
    try:
        loader, process = a_running_loader()
        del loader
        assert ends(process)
    finally:
        gc.enable()


def test_terminating_a_synchronous_loader_is_harmless(numbered, numbers_of):
    loader = DataLoader(Options(), numbered(3))
    loader.terminate()
    assert numbers_of(loader) == [0, 1, 2]
