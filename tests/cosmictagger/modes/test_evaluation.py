"""Evaluating entries of a file: every entry once, the last batch padded for the device and cut again."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("h5py")

from cosmictagger.configuration.compose import configuration
from cosmictagger.data.generator.file import generated_file
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.devices.choosing import device_for
from cosmictagger.devices.executor import Evaluation
from cosmictagger.errors import CheckpointError, ConfigurationError
from cosmictagger.modes.evaluation import entries_from, evaluate_entries, share_of, trained_executor
from cosmictagger.networks.uresnet import stack_planes
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.checkpoints import Checkpoints
from cosmictagger.training.metrics import KEYS, image_metrics
from pilotage import World

SETTINGS = [
    "run.id=test",
    "run.compute_mode=CPU",
    "run.minibatch_size=2",
    "data=generated",
    "data.downsample=4",
    "mode=inference",
    "network=a21",
    "network.depth=1",
    "network.n_initial_filters=2",
    "network.bottleneck_deepest=3",
]


@pytest.fixture
def config():
    return configuration(SETTINGS)


@pytest.fixture
def events(few_events):
    with EventFile(generated_file(few_events, events=4, seed=2)) as file:
        yield file


class Recording:
    """Returns the labels as prediction, and keeps what it was given."""

    def __init__(self):
        self.given = []

    def evaluate(self, batch):
        self.given.append(batch)
        metrics = torch.arange(len(KEYS) + 2.0)
        return Evaluation(loss=0.5, metrics=metrics, prediction=torch.from_numpy(batch.label.copy()))


def test_every_entry_is_evaluated_once_and_padding_is_cut(events, config):
    executor = Recording()
    found = list(evaluate_entries(executor, events, [0, 2, 3], config))
    assert [each.batch.entries.tolist() for each in found] == [[0, 2], [3]]
    assert [batch.entries.tolist() for batch in executor.given] == [[0, 2], [3, 3]]
    assert [each.loss for each in found] == [0.5, None]
    assert [each.heads for each in found] == [(len(KEYS), len(KEYS) + 1), None]
    for each in found:
        np.testing.assert_array_equal(each.prediction, each.batch.label)
        assert each.numbers.shape == (3, len(each.batch.entries), 5)
        np.testing.assert_array_equal(
            each.neutrino_pixels, [np.count_nonzero(label == 2) for label in each.batch.label]
        )


def test_the_metrics_of_each_image_are_those_of_prediction_and_label(events, config):
    class Blind(Recording):
        def evaluate(self, batch):
            found = super().evaluate(batch)
            return Evaluation(loss=found.loss, metrics=found.metrics, prediction=torch.zeros_like(found.prediction))

    (found,) = evaluate_entries(Blind(), events, [0, 1], config)
    label = stack_planes(torch.from_numpy(found.batch.label))[:, 0]
    torch.testing.assert_close(found.numbers, image_metrics(torch.zeros_like(label), label))


def test_the_device_gets_logarithms_and_the_caller_the_charges(events, config):
    config.data.img_transform = True
    executor = Recording()
    (found,) = evaluate_entries(executor, events, [0, 1], config)
    stored = events.dense_batch([0, 1], 4).image
    np.testing.assert_array_equal(found.batch.image, stored)
    np.testing.assert_array_equal(executor.given[0].image, np.log1p(stored))


def test_a_network_with_heads_gets_the_truth_of_its_events(events, config):
    config.network.vertex = True
    executor = Recording()
    list(evaluate_entries(executor, events, [1, 0], config))
    assert executor.given[0].truths.vertex.shape == (2, 3, 2)


def test_entries_start_at_the_index_and_end_with_the_file():
    file = type("File", (), {"path": "events.h5", "__len__": lambda self: 4})()
    assert entries_from(file, 0, 2) == [0, 1]
    assert entries_from(file, 3, 9) == [3]
    for start in (4, -1):
        with pytest.raises(ConfigurationError, match=rf"mode\.start_index is {start}, but events\.h5 holds only 4"):
            entries_from(file, start, 1)


def test_the_weights_of_a_run_are_loaded(config, tmp_path):
    torch.manual_seed(3)
    source = device_for(config).executor(config)
    weights = {name: value + 1 for name, value in source.state()["state_dict"].items()}
    Checkpoints(tmp_path / "checkpoints").save(7, {"state_dict": weights, "global_step": 7})
    executor = trained_executor(config, tmp_path, Processes())
    torch.testing.assert_close(dict(executor.state()["state_dict"]), weights, rtol=0, atol=0)


def test_a_run_without_a_checkpoint_cannot_be_evaluated(config, tmp_path):
    with pytest.raises(CheckpointError, match="No checkpoint in"):
        trained_executor(config, tmp_path, Processes())


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_shares_joined_by_rank_are_all_entries_in_order(size):
    shares = [share_of(list(range(7)), Processes(world=World(rank=rank, size=size))) for rank in range(size)]
    assert [entry for share in shares for entry in share] == list(range(7))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
