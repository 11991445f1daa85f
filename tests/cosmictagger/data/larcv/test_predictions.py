import numpy as np
import pytest

from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.larcv.predictions import PredictionWriter
from cosmictagger.errors import DataError


@pytest.mark.parametrize("downsample", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_predictions_are_read_back_with_charge_truth_and_neutrino(generated, tmp_path, downsample):
    path = tmp_path / "predictions.h5"
    batches = [generated.dense_batch(entries, downsample) for entries in ([0, 1], [2])]
    random = np.random.default_rng(0)
    guesses = [np.where(random.random(batch.label.shape) < 0.001, 2, batch.label) for batch in batches]
    with PredictionWriter(path, source=generated, downsample=downsample) as writer:
        for batch, guess in zip(batches, guesses, strict=True):
            writer.write(batch, guess.astype(np.uint8))
    with EventFile(path) as truth, EventFile(path, label="sbnd_prediction") as predicted:
        assert len(truth) == 3
        assert truth.shape == (1280 >> downsample, 2048 >> downsample)
        found, found_guess = truth.dense_batch([0, 1]), predicted.dense_batch([0, 1])
        assert np.array_equal(found.image, batches[0].image)
        assert np.array_equal(found.label, batches[0].label)
        assert np.array_equal(found_guess.label, guesses[0])
        assert np.array_equal(predicted.dense_batch([2]).label, guesses[1])
        assert found.event_ids.tolist() == [[1, 0, 0], [1, 0, 1]]
        assert truth.truth(2).energy == generated.truth(2).energy
        near = np.array(truth.truth(2).pixels) - np.array(generated.truth(2).pixels)
        assert np.abs(near).max() < 2 ** (downsample + 1)
        assert np.array_equal(truth.particles(1), generated.particles(1))


def test_scores_are_refused_as_classes(generated, tmp_path):
    batch = generated.dense_batch([0], 3)
    with PredictionWriter(tmp_path / "p.h5", source=generated, downsample=3) as writer:
        with pytest.raises(DataError, match="classes from 0 to 2, not scores"):
            writer.write(batch, np.full(batch.label.shape, 7))
        with pytest.raises(DataError, match="channels first"):
            writer.write(batch, np.zeros((1, 160, 256, 3), np.uint8))
