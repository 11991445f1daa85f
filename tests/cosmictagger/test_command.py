"""Whole runs of the command."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from cosmictagger.command import main
from cosmictagger.records.process_log import LOGGER

EXEC = Path(__file__).parents[2] / "bin" / "exec.py"
TINY = (
    "network=a21",
    "network.depth=2",
    "network.n_initial_filters=4",
    "network.bottleneck_deepest=8",
    "network.blocks_deepest_layer=1",
    "data.downsample=5",
    "data.events=6",
    "data.aux_events=4",
    "data.seed=3",
    "framework.seed=5",
    "run.minibatch_size=2",
    "run.aux_iterations=2",
)


@pytest.fixture
def run(tmp_path, few_events, capsys):
    """Runs the command with small images in a folder of the test."""

    def go(*words, folder="run"):
        place = (f"output_dir={tmp_path / folder}", "run.id=x", "data=generated", f"data.data_directory={few_events}")
        code = main([*TINY, *place, *words])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        return tmp_path / folder, printed.out

    return go


def column(path, name):
    with path.open() as file:
        return {int(row["step"]): float(row[name]) for row in csv.DictReader(file)}


@pytest.mark.slow
def test_training_writes_all_its_files(run):
    folder, said = run("run.iterations=5", "mode.checkpoint_iteration=2", "mode.no_summary_images=false")
    log = (folder / "process.log").read_text()
    assert "Dumping launch arguments." in log
    assert "network.depth.................: 2" in log
    assert "Total number of trainable parameters in this network: " in log
    assert "train Step 4 metrics: Average/Non_Bkg_Accuracy: " in log
    assert "(figure of merit)" in log
    assert "optimizer.......: Adam, stepped 5 times" in said
    assert "samples seen....: 10" in said
    assert list(column(folder / "train_metrics.csv", "loss")) == [0, 1, 2, 3, 4]
    assert list(column(folder / "test_metrics.csv", "loss")) == [2, 4]
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "checkpoint",
        "model-2.ckpt",
        "model-4.ckpt",
        "model-5.ckpt",
    ]
    assert len(np.load(folder / "profiles" / "profiling_info_rank_0.npy")) == 5
    assert list((folder / "train").iterdir())
    assert list((folder / "test").iterdir())
    report = json.loads((folder / "report.json").read_text())
    assert report["placement"]["device"] == "cpu"
    assert report["samples_seen"] == 10


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
def test_a_resumed_run_equals_an_uninterrupted_one(run, optimizer):
    words = (f"mode.optimizer.name={optimizer}", "run.saver=false", "mode.optimizer.gradient_accumulation=2")
    whole, _ = run("run.iterations=6", *words, folder="whole")
    run("run.iterations=3", *words, folder="parts")
    parts, said = run("run.iterations=3", *words, folder="parts")
    assert "at step 3" in said
    for table in ("train_metrics.csv", "test_metrics.csv"):
        for name in ("loss", "Average/mIoU"):
            assert column(parts / table, name) == column(whole / table, name)
    one, other = (torch.load(folder / "checkpoints/model-6.ckpt", weights_only=True) for folder in (whole, parts))
    assert all(torch.equal(one["state_dict"][name], other["state_dict"][name]) for name in one["state_dict"])
    assert one["data"] == other["data"]


@pytest.mark.slow
def test_inference_visualize_and_iotest_use_the_trained_weights(run):
    folder, _ = run("run.iterations=2", "run.saver=false")
    _, said = run("mode=inference", "run.minibatch_size=3")
    assert "Inference report: 2 batches processed for 4 entries." in said
    assert (folder / "predictions.h5").is_file()
    assert len(column(folder / "ana_metrics.csv", "Average/Cosmic_IoU")) == 2
    _, said = run("mode=visualize", "mode.events=1")
    assert (folder / "displays" / "event_0.png").stat().st_size > 10_000
    _, said = run("mode=iotest", "run.iterations=3")
    assert "Average Image IO Throughput" in said


@pytest.mark.slow
def test_inference_counts_every_entry_once_whatever_the_batches(run):
    folder, _ = run("run.iterations=2", "run.saver=false")
    means = []
    for size in (1, 3, 4):
        run("mode=inference", f"run.minibatch_size={size}")
        means.append(json.loads((folder / "inference" / "report.json").read_text())["metrics"]["Average/mIoU"])
    assert means == pytest.approx([means[0]] * 3, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("run.precision=bfloat16",),
        ("data.data_format=channels_last",),
        ("network.conv_mode=conv_3D",),
        ("data.img_transform=true", "mode.optimizer.loss_balance_scheme=even"),
        ("run.profile=true",),
        ("network.event_label=true", "network.vertex=true"),
        ("mode.quantization_aware=true",),
    ],
    ids=lambda words: words[0],
)
def test_other_ways_to_train_run_too(run, words):
    folder, _ = run("run.iterations=2", "run.saver=false", *words)
    assert all(np.isfinite(list(column(folder / "train_metrics.csv", "loss").values())))
    assert bool(list((folder / "profiles").glob("timeline_*.json"))) == ("run.profile=true" in words)


@pytest.mark.slow
def test_heads_are_evaluated_in_training_and_inference(run):
    heads = ("network.event_label=true", "network.vertex=true")
    folder, _ = run("run.iterations=3", "run.saver=false", *heads)
    for name in ("Event_Accuracy", "VertexDetection", "VertexResolution", "loss/event_label", "loss/vertex"):
        assert len(column(folder / "train_metrics.csv", name)) == 3
        assert len(column(folder / "test_metrics.csv", name)) == 1
    run("mode=inference", "run.minibatch_size=3", *heads)
    report = json.loads((folder / "inference" / "report.json").read_text())
    assert 0 <= report["metrics"]["VertexDetection"] <= 1
    assert len(column(folder / "ana_metrics.csv", "VertexResolution")) == 2


@pytest.mark.slow
def test_training_can_continue_with_quantization(run):
    whole, _ = run("run.iterations=2", "run.saver=false")
    words = ("mode.quantization_aware=true", f"mode.weights_location={whole}", "run.iterations=2", "run.saver=false")
    folder, said = run(*words, folder="rounded")
    assert "Resumed from" in said
    state = torch.load(folder / "checkpoints" / "model-4.ckpt", weights_only=True)["state_dict"]
    assert float(state["initial_convolution.rounding.high"]) > 0
    run("mode=inference", "mode.quantization_aware=true", folder="rounded")


@pytest.mark.slow
def test_synthetic_data_is_trained_on_without_validation(tmp_path):
    words = [word for word in TINY if "events" not in word]
    assert (
        main([*words, "data=synthetic", "run.id=x", "run.iterations=3", "run.saver=false", f"output_dir={tmp_path}"])
        == 0
    )
    assert len(column(tmp_path / "train_metrics.csv", "loss")) == 3
    assert not (tmp_path / "test_metrics.csv").exists()


def test_a_refusal_is_one_line_and_writes_no_files(tmp_path, capsys):
    code = main(["run.id=x", "framework.sparse=true", f"output_dir={tmp_path / 'out'}"])
    assert code == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("cosmictagger: framework.sparse=true is not supported")
    assert printed.err.count("\n") == 1
    assert not printed.out
    assert not (tmp_path / "out").exists()


def test_an_unwritable_folder_is_refused_in_one_line(tmp_path, few_events, capsys):
    (tmp_path / "file").touch()
    place = (
        f"output_dir={tmp_path / 'file' / 'out'}",
        "run.id=x",
        "data=generated",
        f"data.data_directory={few_events}",
    )
    assert main([*TINY, *place]) == 2
    printed = capsys.readouterr().err
    assert "cannot be written to (Not a directory)" in printed
    assert printed.count("\n") == 1


def test_missing_weights_are_refused_in_one_line(tmp_path, few_events, capsys):
    place = (f"output_dir={tmp_path}", "run.id=x", "data=generated", f"data.data_directory={few_events}")
    assert main([*TINY, *place, "mode=inference"]) == 2
    assert "Train first, or set mode.weights_location" in capsys.readouterr().err


def test_errors_of_the_engine_are_one_line_too(tmp_path, few_events, capsys, monkeypatch):
    monkeypatch.setenv("RANK", "first")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert (
        main([*TINY, f"output_dir={tmp_path}", "run.id=x", "data=generated", f"data.data_directory={few_events}"]) == 2
    )
    assert capsys.readouterr().err == (
        "cosmictagger: The environment variable RANK is 'first'. It must be a whole number.\n"
    )


def test_help_lists_recipes_and_groups(capsys):
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert "a21-deterministic" in said
    assert "visualize" in said


@pytest.mark.slow
def test_an_interrupted_training_says_how_to_resume(tmp_path, few_events, capsys):
    words = [
        *TINY,
        f"output_dir={tmp_path}",
        "run.id=x",
        "data=generated",
        f"data.data_directory={few_events}",
        "run.iterations=1",
    ]
    assert interrupted("No checkpoint file found", words) == 130
    assert "interrupted; no checkpoint was saved yet, so the same command starts over\n" in capsys.readouterr().err
    assert main(words) == 0
    assert interrupted("Resumed from", words) == 130
    kept = [path.name for path in (tmp_path / "checkpoints").glob("model-*.ckpt")]
    said = capsys.readouterr().err
    assert f"interrupted; the same command resumes from the last checkpoint, {kept[0]}\n" in said
    words = [
        *TINY,
        f"output_dir={tmp_path}",
        "run.id=x",
        "data=generated",
        f"data.data_directory={few_events}",
        "mode=iotest",
    ]
    assert interrupted("-- CONFIG --", words) == 130
    assert capsys.readouterr().err.endswith("cosmictagger: interrupted\n")


def interrupted(phrase, words):
    """The exit code of a command that is interrupted as soon as it logs a phrase."""

    def listen(record):
        if phrase in record.getMessage():
            signal.raise_signal(signal.SIGINT)
        return True

    LOGGER.addFilter(listen)
    try:
        return main(words)
    finally:
        LOGGER.removeFilter(listen)


KILLER = """
import io, os, signal, sys
import torch
real_fsync, real_save, chosen, seen = os.fsync, torch.save, int(sys.argv[1]), 0

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def fsync(handle):
    global seen
    seen += "/checkpoints" in os.readlink(f"/proc/self/fd/{handle}")
    if chosen and seen == 4 + chosen:
        die()
    real_fsync(handle)

def save(state, file):
    whole = io.BytesIO()
    real_save(state, whole)
    if not chosen and state["global_step"] % 4 == 3:
        file.write(whole.getvalue()[: len(whole.getvalue()) // 2])
        file.flush()
        die()
    file.write(whole.getvalue())

os.fsync, torch.save = fsync, save
from cosmictagger.command import main
sys.exit(main(sys.argv[2:]))
"""
"""Kills itself in the second checkpoint: in the middle of the file, or when file, folder, index or folder again are
forced to the disk."""


@pytest.mark.long
def test_killing_a_run_while_it_saves_does_not_change_results(run, tmp_path, few_events):
    words = ("run.iterations=16", "mode.checkpoint_iteration=1", "run.saver=false")
    whole, _ = run(*words, folder="whole")
    place = [f"output_dir={tmp_path / 'killed'}", "run.id=x", "data=generated", f"data.data_directory={few_events}"]
    for number in range(10):
        command = [sys.executable, "-c", KILLER, str((number + 1) % 5), *TINY, *place, *words]
        killed = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert number == 0 or "Resumed from" in killed.stdout
    resumed, said = run(*words, folder="killed")
    assert "Resumed from" in said
    for table in ("train_metrics.csv", "test_metrics.csv"):
        expected, found = (column(folder / table, "loss") for folder in (whole, resumed))
        assert {step: found[step] for step in expected} == expected


@pytest.mark.slow
def test_the_original_command_works(tmp_path, few_events):
    words = [
        *TINY,
        "mode=iotest",
        "run.id=io",
        f"output_dir={tmp_path}",
        "data=generated",
        f"data.data_directory={few_events}",
    ]
    ran = subprocess.run([sys.executable, str(EXEC), *words, "run.iterations=2"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "Average Image IO Throughput" in ran.stdout


@pytest.mark.slow
def test_training_overfits_the_real_events(tmp_path, real_events, capsys):
    """Training memorizes five events: cosmic rays are found."""
    words = (
        "mode=train",
        "run.id=real",
        "network=a21",
        "network.depth=3",
        "network.bottleneck_deepest=32",
        "data=real",
        f"data.data_directory={real_events.parent}",
        f"data.file={real_events.name}",
        f"data.aux_file={real_events.name}",
        "data.downsample=4",
        "data.img_transform=true",
        "data.seed=1",
        "framework.seed=1",
        "mode.optimizer.learning_rate=0.003",
        "run.minibatch_size=1",
        "run.iterations=250",
        "run.aux_iterations=1000",
        "run.saver=false",
    )
    assert main([*words, f"output_dir={tmp_path}"]) == 0
    capsys.readouterr()
    losses = list(column(tmp_path / "train_metrics.csv", "loss").values())
    cosmic = list(column(tmp_path / "train_metrics.csv", "Average/Cosmic_IoU").values())
    assert np.mean(losses[-20:]) < 0.7 * np.mean(losses[:5])
    assert np.mean(cosmic[-20:]) > 0.7
