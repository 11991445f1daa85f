"""mode=train: its length, its rates and its validation events."""

import csv

import pytest

from cosmictagger.command import main
from cosmictagger.data.generator.file import generate_file

TINY = (
    "run.id=x",
    "network=a21",
    "network.depth=1",
    "network.n_initial_filters=2",
    "network.bottleneck_deepest=4",
    "network.blocks_deepest_layer=1",
    "data.downsample=6",
    "data.workers=1",
    "run.saver=false",
)


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    generate_file(folder / "some.h5", events=5, seed=1)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("aux", ["", "missing.h5"])
def test_training_without_validation_events_warns_and_continues(tmp_path, events, capsys, aux):
    place = (f"data.data_directory={events}", "data.file=some.h5", f"data.aux_file={aux}", f"output_dir={tmp_path}")
    assert main([*TINY, *place, "run.iterations=3", "run.aux_iterations=1"]) == 0
    assert "WARNING - No validation: " in capsys.readouterr().out
    assert not (tmp_path / "test_metrics.csv").exists()
    assert [path.name for path in events.iterdir()] == ["some.h5"]


@pytest.mark.slow
def test_a_run_has_the_length_of_version_21_and_its_rates(tmp_path, events):
    place = (f"data.data_directory={events}", "data.file=some.h5", "data.aux_file=", f"output_dir={tmp_path}")
    words = ("run.run_length=2", "run.minibatch_size=2", "mode.optimizer.lr_schedule.peak_learning_rate=0.01")
    assert main([*TINY, *place, *words]) == 0
    with (tmp_path / "train_metrics.csv").open() as file:
        assert [float(row["learning_rate"]) for row in csv.DictReader(file)] == [0.01] * 4


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "idle"), [(20, None), (22, "steps 20 to 21")])
def test_a_schedule_that_ends_before_the_run_warns(tmp_path, events, capsys, steps, idle):
    place = (f"data.data_directory={events}", "data.file=some.h5", "data.aux_file=", f"output_dir={tmp_path}")
    words = (f"run.iterations={steps}", "run.minibatch_size=5", "mode.optimizer.lr_schedule.name=flat")
    assert main([*TINY, *place, *words]) == 0
    said = capsys.readouterr().out
    assert ("The schedule flat ends after 20 steps (20 epochs of 1)" in said) is (idle is not None)
    assert idle is None or f"the learning rate of {idle} is 0" in said
    with (tmp_path / "train_metrics.csv").open() as file:
        rates = [float(row["learning_rate"]) for row in csv.DictReader(file)]
    assert rates == [0.001] * 20 + [0.0] * (steps - 20)
