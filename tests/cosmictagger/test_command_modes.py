"""Flags of the command, and modes in several processes."""

import json

import h5py
import numpy as np
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


def test_hydras_flags_answer_without_a_run(capsys):
    assert main(["--cfg", "job", "network=a21", "--package", "network"]) == 0
    assert capsys.readouterr().out.startswith("name: A21")
    assert main(["--cfg", "job", "network.dept=3"]) == 2
    assert "Did you mean network.depth?" in capsys.readouterr().err
    assert main(["--multirn"]) == 2
    assert "Did you mean --multirun?" in capsys.readouterr().err


@pytest.mark.slow
def test_hydra_completes_words_in_the_shell(capsys):
    assert main(["-sc", "install=bash"]) == 0
    assert "hydra_bash_completion" in capsys.readouterr().out


@pytest.mark.slow
def test_every_combination_of_values_runs_in_a_folder_of_its_own(tmp_path, capsys):
    words = [*TINY, "data=synthetic", f"output_dir={tmp_path}", "run.iterations=1,2", "run.minibatch_size=1"]
    assert main(["--multirun", *words]) == 0
    assert "Job 2 of 2: " in capsys.readouterr().out
    steps = [(tmp_path / f"job_{number}" / "train_metrics.csv").read_text().count("\n") - 1 for number in range(2)]
    assert steps == [1, 2]


def test_a_sweep_with_an_impossible_job_runs_none(tmp_path, capsys):
    words = [*TINY, "data=synthetic", f"output_dir={tmp_path / 'out'}", "run.iterations=1", "network.depth=1,2"]
    assert main(["--multirun", *words]) == 2
    printed = capsys.readouterr()
    assert "network.depth=2 and data.downsample=6 add up to 8" in printed.err
    assert "Job 1" not in printed.out
    assert not (tmp_path / "out").exists()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_inference_and_iotest_divide_events_among_processes(tmp_path, events, start):
    place = (f"data.data_directory={events}", "data.file=some.h5", f"output_dir={tmp_path}")
    assert main([*TINY, *place, "data.aux_file=", "run.iterations=2", "framework.seed=3"]) == 0
    found = []
    for instances in (1, 2):
        given = (*TINY, *place, "mode=inference", "run.iterations=500")
        codes, said = start(*given, by="torchrun" if instances > 1 else "nobody", instances=instances).finish()
        assert codes == [0], said
        report = json.loads((tmp_path / "inference" / "report.json").read_text())
        assert report["placement"]["instances"] == instances
        assert ("each instance predicts its share" in report["placement"]["exchange"]) is (instances > 1)
        with h5py.File(tmp_path / "predictions.h5") as file:
            voxels = file["Data/sparse2d_sbnd_prediction_group/voxels"][:]
            extents = file["Data/sparse2d_sbnd_prediction_group/extents"][:]
        found.append((report["metrics"]["Average/mIoU"], report["entries"], voxels, extents))
    assert found[0][:2] == pytest.approx(found[1][:2], rel=1e-6)
    assert found[0][1] == 5
    for one, other in zip(found[0][2:], found[1][2:], strict=True):
        np.testing.assert_array_equal(one, other)
    assert not list(tmp_path.glob("predictions-*"))
    given = (*TINY, *place, "mode=iotest", "run.iterations=2", "mode.start_index=3")
    codes, said = start(*given, by="torchrun", instances=2).finish()
    assert codes == [0], said
    assert "Process 1: 2 images in " in said
    assert "All processes: 4 images in " in said
