"""The sources of events, and which of them are cached."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cosmictagger.configuration.choices import ComputeMode
from cosmictagger.configuration.data import Generated
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.data.cached_events import CachedEvents
from cosmictagger.data.events import Batch, PaddedBatch
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.synthetic import SyntheticEvents
from cosmictagger.devices.choosing import device_for
from cosmictagger.devices.inputs import tensors
from cosmictagger.devices.loading import Purpose
from cosmictagger.modes import sources
from cosmictagger.modes.sources import cached, training_events
from cosmictagger.processes.process_group import Processes
from pilotage import World

HOST = torch.device("cpu")


@pytest.fixture
def config(few_events):
    data = Generated(data_directory=str(few_events), events=4, aux_events=4, downsample=5, seed=3, generator_seed=2)
    return Configuration(run=Run(id="x", minibatch_size=4), data=data)


def loader_for(config, source, order, processes=None, purpose=Purpose.training):
    return device_for(config).loader(config, source, order, processes or Processes(), purpose)


def test_only_small_files_are_cached(config, monkeypatch):
    with training_events(config) as file:
        assert isinstance(cached(config, file), CachedEvents)
        monkeypatch.setattr(sources, "MAX_CACHED_BYTES", 1000)
        assert cached(config, file) is file
    noise = SyntheticEvents(2, downsample=5)
    assert cached(config, noise) is noise


def test_cached_events_give_the_same_batches_as_the_file(config):
    with training_events(config) as file:
        assert isinstance(file, EventFile)
        ours, theirs = (loader_for(config, source, "random_blocks") for source in (cached(config, file), file))
        for _ in range(3):
            one, other = next(ours), next(theirs)
            for name in ("image", "label", "entries"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        ours.close()
        theirs.close()


def test_processes_get_shares_that_do_not_overlap(config):
    with training_events(config) as file:
        shares = []
        for rank in range(2):
            loader = loader_for(config, file, "random_blocks", Unconnected(world=World(rank=rank, size=2)))
            shares.append(next(loader).entries.tolist())
            loader.close()
    assert sorted(shares[0] + shares[1]) == [0, 1, 2, 3]


@pytest.mark.parametrize(("downsample", "kind"), [(1, PaddedBatch), (5, Batch)])
def test_an_ipu_gets_filled_pixels_if_they_are_smaller_than_images(config, downsample, kind):
    data = replace(config.data, downsample=downsample)
    config = replace(config, run=replace(config.run, compute_mode=ComputeMode.IPU), data=data)
    with training_events(config) as file:
        training, validation = (
            loader_for(config, file, "serial_access", purpose=purpose)
            for purpose in (Purpose.training, Purpose.validation)
        )
        sent, shown = next(training), next(validation)
        assert (type(sent), type(shown)) == (kind, Batch)
        for one, other in zip(tensors(sent, HOST), tensors(shown, HOST), strict=True):
            assert torch.equal(one, other)
        training.close()
        validation.close()


class Unconnected(Processes):
    """One of several processes that do not communicate."""

    def broadcast(self, value):
        return value
