"""One network in all processes, or one in each."""

import pytest

from cosmictagger.configuration.choices import ComputeMode
from cosmictagger.configuration.process_settings import divide
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from pilotage import World


def configured(**run):
    return Configuration(run=Run(id="x", **run), output_dir="out")


def test_one_process_is_left_alone():
    config = configured()
    assert divide(config, [], World()) is None
    assert not config.run.distributed


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun"])
def test_several_processes_train_one_network_by_default(launcher):
    config = configured()
    assert divide(config, ["run.id=x"], World(rank=1, size=2, launcher=launcher)) is None
    assert config.run.distributed
    assert config.output_dir == "out"


def test_processes_that_are_not_to_share_a_network_have_folders_of_their_own():
    folders = []
    for rank in range(2):
        config = configured()
        warning = divide(config, ["run.distributed=False"], World(rank=rank, size=2, launcher="mpirun"))
        assert "each of them works independently" in warning
        folders.append(config.output_dir)
    assert folders == ["out", "out/process_1"]


def test_instances_of_popdist_share_a_network_whatever_the_option_says():
    config = configured(compute_mode=ComputeMode.IPU)
    said = divide(config, ["run.distributed=False"], World(rank=1, size=2, launcher="poprun"))
    assert "They train one network." in said
    assert config.output_dir == "out"


@pytest.mark.parametrize(("words", "batch"), [([], 3), (["run.distributed=true"], 3), (["run.distributed=False"], 12)])
def test_each_instance_of_a_published_poprun_command_reads_a_whole_minibatch(words, batch):
    config = configured(compute_mode=ComputeMode.IPU, minibatch_size=3, distributed=words == ["run.distributed=true"])
    divide(config, words, World(rank=0, size=4, launcher="poprun"))
    assert config.run.minibatch_size == batch
