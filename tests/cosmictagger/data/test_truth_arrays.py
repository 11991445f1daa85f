"""The truth that trains the heads of a network."""

import numpy as np

from cosmictagger.data.cached_events import CachedEvents
from cosmictagger.data.generator.file import generated_file
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.loader import Loader
from cosmictagger.data.truth import COSMIC_ONLY, event_class
from cosmictagger.data.truth_arrays import ABSENT, neutrino_pixels, truths_of


def test_kind_and_vertex_are_those_of_the_file(few_events):
    with EventFile(generated_file(few_events, events=4, seed=2)) as file:
        dense, sparse = file.dense_batch([0, 1], 3), file.batch([0, 1], 3)
        assert list(neutrino_pixels(dense)) == list(neutrino_pixels(sparse))
        found = truths_of(file, dense, 3)
        for position in range(2):
            truth = file.truth(position)
            assert found.event_label[position] == event_class(truth, int(neutrino_pixels(dense)[position]))
            np.testing.assert_allclose(found.vertex[position], (np.array(truth.pixels) + 0.5) / 8)


def test_an_event_without_truth_is_cosmic_only(few_events):
    class Unknowing:
        def truth(self, entry):
            return None

    with EventFile(generated_file(few_events, events=4, seed=2)) as file:
        found = truths_of(Unknowing(), file.dense_batch([0], 5), 5)
    assert list(found.event_label) == [COSMIC_ONLY]
    assert (found.vertex == ABSENT).all()


def test_a_loader_adds_them_from_a_file_and_from_the_cache(few_events):
    with EventFile(generated_file(few_events, events=4, seed=2)) as file:
        for source in (file, CachedEvents(file, downsample=4)):
            for sparse in (False, True):
                loader = Loader(source, minibatch_size=2, downsample=4, seed=1, workers=1, sparse=sparse, truths=True)
                with loader:
                    batch = next(loader)
                expected = truths_of(file, file.dense_batch(batch.entries, 4), 4)
                np.testing.assert_array_equal(batch.truths.event_label, expected.event_label)
                np.testing.assert_array_equal(batch.truths.vertex, expected.vertex)
