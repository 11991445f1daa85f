"""Files of events joined into one."""

import h5py
import numpy as np
import pytest

from cosmictagger.data.generator.file import generate_file
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.larcv.merging import merge_files
from cosmictagger.data.larcv.predictions import PredictionWriter


def tables(path):
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, node: found.update({name: node[:]}) if isinstance(node, h5py.Dataset) else None)
    return found


@pytest.fixture
def events(tmp_path):
    return generate_file(tmp_path / "events.h5", events=3, seed=5)


def predictions(path, source, entries):
    with EventFile(source) as file, PredictionWriter(path, source=file, downsample=4) as writer:
        batch = file.dense_batch(entries, 4)
        writer.write(batch, batch.label)
    return path


def test_joined_predictions_equal_those_written_at_once(events, tmp_path):
    whole = predictions(tmp_path / "whole.h5", events, [0, 1, 2])
    parts = [predictions(tmp_path / f"{number}.h5", events, each) for number, each in enumerate(([0], [1, 2]))]
    merged = merge_files(tmp_path / "merged.h5", parts)
    expected, found = tables(whole), tables(merged)
    assert expected.keys() == found.keys()
    for name, rows in expected.items():
        np.testing.assert_array_equal(rows, found[name], err_msg=name)
    with EventFile(merged, label="sbnd_prediction") as file:
        assert len(file) == 3
    assert not list(tmp_path.glob("*.part"))


def test_a_file_that_cannot_be_read_leaves_nothing_behind(events, tmp_path):
    (tmp_path / "bad.h5").write_bytes(b"nothing")
    with pytest.raises(OSError, match="signature"):
        merge_files(tmp_path / "merged.h5", [events, tmp_path / "bad.h5"])
    assert not (tmp_path / "merged.h5").exists()
    assert not list(tmp_path.glob(".*.part"))
