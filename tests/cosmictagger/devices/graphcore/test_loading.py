"""Batches through PopTorch's loader: the same events in the same order."""

import numpy as np
import pytest

import poptorch
from cosmictagger.data.events import PaddedBatch
from cosmictagger.data.generator.file import generated_file
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.loader import Loader
from cosmictagger.data.synthetic import SyntheticEvents
from cosmictagger.devices.graphcore.loading import PopTorchLoader

SHAPE = (32, 64)


def plain(rank=0, size=1):
    source = SyntheticEvents(4, downsample=0, shape=SHAPE, seed=1)
    return Loader(
        source, minibatch_size=4, downsample=0, order="random_blocks", seed=7, workers=1, rank=rank, size=size
    )


@pytest.mark.parametrize(("rank", "size"), [(0, 1), (1, 2)])
def test_a_call_gets_the_batches_that_it_accumulates(rank, size):
    options = poptorch.Options()
    options.Training.gradientAccumulation(2)
    ours, theirs = PopTorchLoader(plain(rank, size), options, accumulation=2), plain(rank, size)
    for _ in range(2):
        found, expected = next(ours), [next(theirs), next(theirs)]
        for name in ("image", "label", "entries", "event_ids"):
            np.testing.assert_array_equal(
                getattr(found, name), np.concatenate([getattr(each, name) for each in expected])
            )
    assert ours.state() == theirs.state()
    ours.close()
    theirs.close()


def test_filled_pixels_pass_through_unchanged(few_events):
    file = EventFile(generated_file(few_events, events=4, seed=2))

    def reading():
        settings = {"minibatch_size": 2, "downsample": 1, "seed": 7, "workers": 1, "truths": True}
        return Loader(file, sparse=True, pixels=file.max_pixels, **settings)

    options = poptorch.Options()
    options.Training.gradientAccumulation(2)
    ours, theirs = PopTorchLoader(reading(), options, accumulation=2), reading()
    found, expected = next(ours), [next(theirs), next(theirs)]
    assert isinstance(found, PaddedBatch)
    assert found.shape == (4, 3, 640, 1024)
    for name in ("index", "charge", "label", "entries", "event_ids"):
        np.testing.assert_array_equal(getattr(found, name), np.concatenate([getattr(each, name) for each in expected]))
    vertices = np.concatenate([each.truths.vertex for each in expected])
    np.testing.assert_array_equal(found.truths.vertex, vertices)
    for each in (ours, theirs, file):
        each.close()


def test_a_position_can_be_restored():
    ours, again = (PopTorchLoader(plain(), poptorch.Options()) for _ in range(2))
    next(ours)
    again.restore(ours.state())
    np.testing.assert_array_equal(next(again).entries, next(ours).entries)
    ours.close()
    again.close()
