"""PopTorch's options, with and without poprun."""

import logging

import pytest
import torch

import poptorch
from cosmictagger.configuration.choices import Precision
from cosmictagger.configuration.run import Run
from cosmictagger.devices.graphcore.options import local_replicas, options_for
from cosmictagger.training.precision import NUMBER_TYPES

POPRUN = {
    "POPDIST_NUM_TOTAL_REPLICAS": "4",
    "POPDIST_NUM_LOCAL_REPLICAS": "2",
    "POPDIST_REPLICA_INDEX_OFFSET": "2",
}


@pytest.fixture
def under_poprun(monkeypatch):
    for name, value in POPRUN.items():
        monkeypatch.setenv(name, value)


def test_the_options_follow_the_configuration():
    options = options_for(Run(num_replicas=3), NUMBER_TYPES[Precision.float16], [], accumulation=5, training=True)
    assert options.replication_factor == 3
    assert options.Training.gradient_accumulation == 5
    assert options.output_mode == poptorch.OutputMode.All
    assert options.random_seed == torch.initial_seed() % 2**31


def test_poprun_sets_the_replicas_and_a_notice_says_so(under_poprun, caplog):
    caplog.set_level(logging.INFO)
    options = options_for(Run(num_replicas=7), NUMBER_TYPES[Precision.float32], [], training=True)
    assert options.replication_factor == 2
    assert (options.Distributed.processId, options.Distributed.numProcesses) == (1, 2)
    assert local_replicas(Run(num_replicas=7)) == 2
    assert "run.num_replicas=7 is ignored: poprun sets the replicas." in caplog.text
    assert "Num of local replicas: 2" in caplog.text


def test_without_poprun_other_launchers_number_the_processes(monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    options = options_for(Run(distributed=True), NUMBER_TYPES[Precision.float32], [], training=True)
    assert (options.Distributed.processId, options.Distributed.numProcesses) == (1, 2)


def test_stages_become_a_strategy():
    options = options_for(Run(), NUMBER_TYPES[Precision.float32], ["a", "b"], accumulation=3, training=True)
    assert type(options._execution_strategy) is poptorch.PipelinedExecution
    options = options_for(Run(), NUMBER_TYPES[Precision.float32], ["a", "b"], accumulation=3, training=False)
    assert type(options._execution_strategy) is poptorch.ShardedExecution
